import { secondMs } from '../duration.ts';
import { bytes, duration, int } from '../number-kinds.ts';
import { flag, group, mapOf, optional, required, secret, setting, shorthand } from '../schema-nodes.ts';
import { mediaType, path, text, url } from '../text-kinds.ts';
import { listOf, nullable, oneOf } from '../value-kind.ts';

const interpreter = shorthand(
  'Command',
  group('Program that runs scripts with this extension; a path alone stands for {Command}.', {
    Command: required(path({ absolute: true }), 'Program, by its absolute path.'),
    Arguments: setting(listOf(text({ empty: true })), [], 'Arguments in front of the script file.'),
  }),
);

const scripts = group(
  'Scripts of skills. They run with the rights of the service: isolating them is up to the platform.',
  {
    Enabled: flag(false, 'Scripts may run. Needs the acknowledgement below and Host:SkillScripts:Register.'),
    PlatformIsolationAcknowledged: flag(
      false,
      'You confirm that a container, machine or account isolates the scripts.',
    ),
    Isolation: setting(
      oneOf(['Auto', 'Required']),
      'Auto',
      'Auto: each script gets a PID namespace where the system allows it. Required: without one the service does not start.',
    ),
    AllowStoredScripts: flag(false, 'Scripts of skills from the store may run, not only those on disk.'),
    SkillRoots: setting(listOf(path({ label: 'folder' })), [], 'Folders with skills of the host.'),
    Interpreters: mapOf('{extension}', interpreter, 'Programs by file extension. Without any, no script starts.', {
      pattern: /^[a-z0-9]{1,16}$/,
      expected: 'a file extension without the dot: 1 to 16 of a-z 0-9',
    }),
    EnvironmentAllowList: setting(listOf(text()), ['PATH', 'HOME'], 'Variables of the service that a script gets.'),
    Timeout: setting(duration(), 30 * secondMs, 'Time one script may take.'),
    MaxOutputBytes: setting(bytes(), 262_144, 'Output that is kept, both streams together.'),
    MaxArgumentBytes: setting(bytes(), 16_384, 'Arguments of a call as JSON text.'),
    MaxScriptContentLength: setting(bytes(), 65_536, 'Size of a stored script.'),
    MaxScriptsPerSkill: setting(int({ min: 0 }), 10, 'Scripts one skill may have.'),
    MaxConcurrentPerTenant: setting(int({ min: 1 }), 2, 'Scripts of a tenant that run side by side; others wait.'),
    MaxConcurrentTotal: setting(int({ min: 1 }), 8, 'Scripts that run side by side in this process.'),
    SearchDepth: setting(int({ min: 1 }), 2, 'Folder levels that are searched below a skill root.'),
  },
);

export const skillSettings = {
  Skills: group('Agent skills.', {
    MaxSkillsPerAgent: setting(int({ min: 0 }), 10, 'Skills that an agent may use.'),
    MaxInstructionsLength: setting(bytes(), 65_536, 'Size of the instructions.'),
    MaxResourceContentLength: setting(bytes(), 262_144, 'Size of one resource.'),
    MaxResourcesPerSkill: setting(int({ min: 0 }), 20, 'Resources one skill may have.'),
    Scripts: scripts,
  }),
  Attachments: group('Files that callers upload.', {
    MaxBytes: setting(bytes({ min: 1, max: 1_073_741_824 }), 20_971_520, 'Size of one file.'),
    AllowedMediaTypes: setting(
      listOf(mediaType({ wildcard: true })),
      ['image/png', 'image/jpeg', 'image/webp', 'image/gif', 'application/pdf', 'text/plain', 'audio/*'],
      'Types that are accepted, as found in the bytes of the file.',
    ),
    Store: optional(
      oneOf(['Database', 'Folder', 'S3']),
      'Where the bytes of new ones are kept; those of others stay readable where they are. Null: Folder on SQLite, Database on PostgreSQL.',
    ),
    Folder: optional(
      path({ label: 'folder' }),
      'Folder that all processes of the service see, for Store Folder; with Store null its bytes are only read. Null: the one beside the store file of SQLite.',
    ),
    S3: group('A bucket of Amazon S3, or of a server that speaks its protocol.', {
      Bucket: optional(text({ max: 255 }), 'Name of the bucket; it is there already.'),
      Region: setting(text({ max: 64 }), 'us-east-1', 'Region of the bucket.'),
      Endpoint: optional(url(), 'Address of the server. Null: that of Amazon for the region.'),
      Prefix: setting(
        text({ max: 512, empty: true }),
        '',
        'In front of every name in the bucket, as it is: a folder ends with /.',
      ),
      AccessKeyId: secret(
        nullable(text()),
        null,
        'Null: credentials are found as other clients on this machine find them.',
      ),
      SecretAccessKey: secret(nullable(text()), null, 'Together with AccessKeyId.'),
    }),
  }),
};
