import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { parse } from 'yaml';
import { call } from '../e2e/wire.ts';
import { eventually, processMs } from '../support/eventually.ts';
import { createDatabase } from '../support/postgres-server.ts';
import { program } from '../support/program.ts';
import { skip as noServer } from './members.ts';

const root = join(import.meta.dirname, '../..');
const deploy = join(root, 'docs/deploy');
const mayMount = spawnSync('unshare', ['--mount', 'true'], { stdio: 'ignore' }).status === 0;
const skip = mayMount ? noServer : 'this user may not have mounts of its own';

// biome-ignore lint/suspicious/noExplicitAny: documents of a form that test/docs/deploy.test.ts establishes.
type Document = any;
const read = (path: string): Document => parse(readFileSync(join(deploy, path), 'utf8'));

const [container] = read('kubernetes/deployment.yaml').spec.template.spec.containers;
const composed = read('compose.yaml').services['acp-1'];

interface Declared {
  readonly name: string;
  readonly configuration: string;
  /** Folders that the container may write to. */
  readonly writable: readonly string[];
  /** Variables that it sets. */
  readonly variables: Readonly<Record<string, string>>;
}

const declared: readonly Declared[] = [
  {
    name: 'Kubernetes',
    configuration: read('kubernetes/config.yaml').data['service.yaml'],
    writable: container.volumeMounts.flatMap((mount: Document) => (mount.readOnly === true ? [] : [mount.mountPath])),
    variables: Object.fromEntries((container.env ?? []).map(({ name, value }: Document) => [name, value])),
  },
  {
    name: 'Compose',
    configuration: readFileSync(join(deploy, 'service.yaml'), 'utf8'),
    writable: (composed.tmpfs ?? []).map((mount: string) => mount.split(':', 1)[0]),
    variables: composed.environment ?? {},
  },
];

/**
 * As a container has it: every file system is read-only but new, empty ones at the declared folders. What is needed of this
 * machine stays where it is, read-only, also below a declared folder. Ends with 90 where something else can be written to.
 */
const contained = `
set -e
folder=$1; needed=$2; writable=$3; shift 3
mount --make-rprivate /
mount -t tmpfs tmpfs /mnt
count=0
for place in $needed; do count=$((count + 1)); mkdir /mnt/$count; mount --rbind "$place" /mnt/$count; done
for place in $writable; do mount -t tmpfs tmpfs "$place"; done
count=0
for place in $needed; do count=$((count + 1)); mkdir -p "$place"; mount --rbind /mnt/$count "$place"; done
while read -r _ place type _; do
  case $type in proc|sysfs|devpts|mqueue|cgroup*) continue;; esac
  case " $writable " in *" $place "*) continue;; esac
  mount -o remount,bind,ro "$place" 2>/dev/null || true
done < /proc/self/mounts
for place in $needed /mnt /; do ! touch "$place/written" 2>/dev/null || exit 90; done
for place in $writable; do touch "$place/written"; rm "$place/written"; done
cd "$folder"
exec "$@"
`;

const token = 'a'.repeat(64);

/** The process in its container; ends with the test. */
const startContained = async (t: TestContext, { configuration, writable, variables }: Declared, database: string) => {
  const folder = mkdtempSync(join(tmpdir(), 'acp-contained-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, 'secrets'));
  writeFileSync(join(folder, 'secrets', 'token'), `${token}\n`);
  writeFileSync(join(folder, 'secrets', 'database'), `${database}\n`);
  const text = configuration
    .replace(/AuthToken: .*/, `AuthToken: "\${file:${folder}/secrets/token}"`)
    .replace(/ConnectionString: .*/, `ConnectionString: "\${file:${folder}/secrets/database}"`);
  writeFileSync(join(folder, 'service.yaml'), text);
  writeFileSync(join(folder, 'script.yaml'), 'rules: [{ reply: { text: Hello. } }]\n');
  const socket = new URL(database).searchParams.get('host');
  const needed = [root, folder, ...(socket === null ? [] : [socket])];
  const child = spawn(
    'unshare',
    [
      ...['--mount', 'sh', '-c', contained, 'sh', folder, needed.join(' '), writable.join(' ')],
      ...[...program, 'serve', '--json', '--config', join(folder, 'service.yaml')],
    ],
    {
      env: {
        ...{ PATH: process.env['PATH'], HOME: '/nonexistent', Host__Url: 'http://127.0.0.1:0' },
        ...{ Service__Providers__Scripted__demo__File: join(folder, 'script.yaml'), ...variables },
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  const closed = once(child, 'close');
  t.after(async () => {
    child.kill('SIGKILL');
    await closed;
  });
  let said = '';
  child.stderr.on('data', (part) => {
    said += part;
  });
  let url: string | undefined;
  createInterface(child.stdout).on('line', (line) => {
    said += `${line}\n`;
    url ??= (JSON.parse(line) as { url?: string }).url;
  });
  const address = await eventually(
    'the address of the process',
    async () => {
      assert.equal(child.exitCode, null, said);
      return url ?? null;
    },
    processMs,
  );
  return {
    url: address,
    said: () => said,
    async stop() {
      child.kill('SIGTERM');
      const [code] = await closed;
      return code as number;
    },
  };
};

for (const container of declared)
  test(`a process with a read-only root and the writable folders of ${container.name} serves, and stops in order`, {
    skip,
    timeout: 120_000,
  }, async (t) => {
    const { url: database, drop } = await createDatabase();
    t.after(drop);
    const { url, said, stop } = await startContained(t, container, database);
    const headers = { authorization: `Bearer ${token}` };
    const ask = (method: string, path: string, body?: unknown) =>
      call(`${url}${path}`, { method, headers, ...(body === undefined ? {} : { body }) });
    await eventually('readiness', async () => (await call(`${url}/health/ready`)).status === 200);
    const agent = { name: 'plain', model: { provider: 'demo', model: 'demo-1' } };
    assert.equal((await ask('POST', '/api/agents', agent)).status, 201);
    const bytes = Buffer.alloc(400_000, 'attached ');
    const form = new FormData();
    form.append('file', new Blob([bytes], { type: 'text/plain' }), 'note.txt');
    const uploaded = await fetch(`${url}/api/attachments`, { method: 'POST', headers, body: form });
    assert.equal(uploaded.status, 201);
    const { id } = (await uploaded.json()) as { id: string };
    assert.equal((await ask('GET', `/api/attachments/${id}`)).text.length, bytes.length);
    const run = await ask('POST', '/api/agents/plain/run', { message: 'Hi', stream: false });
    assert.deepEqual([run.status, run.json<{ status: string }>().status], [200, 'Completed'], run.text);
    assert.equal(await stop(), 0, said());
    assert.doesNotMatch(said(), /EROFS|EACCES|read-only/i);
  });
