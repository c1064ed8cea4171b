import { createServer } from 'node:net';
import { join, relative, resolve } from 'node:path';
import { createClient } from '../../client/client.ts';
import { httpTransport } from '../../client/http-transport.ts';
import { AcpError } from '../../contract/errors.ts';
import { makeFolder } from '../../core/files/make-folder.ts';
import { privateFolderMode } from '../../core/files/private-file.ts';
import { version } from '../../core/version.ts';
import { safeLine } from '../../text/text-width.ts';
import type { CommandHost, Invocation } from '../command-host.ts';
import { applyDefinition } from '../definitions/apply-definition.ts';
import { readConfig } from '../read-config.ts';
import { runStreaming } from '../runs/stream-run.ts';
import { sampleProvider } from '../sample-provider.ts';
import { type Serving, serveUntilStopped } from '../serving.ts';
import type { Session } from '../session.ts';

const usualPort = 7070;
const question = 'What time is it in Vienna?';

/** True when nothing listens on the port of the loopback address; 0 finds one. */
const freePort = (port: number): Promise<number | null> =>
  new Promise((done) => {
    const probe = createServer();
    probe.once('error', () => done(null));
    probe.listen(port, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => done(typeof address === 'object' && address !== null ? address.port : null));
    });
  });

/** The port that was asked for, whatever it holds; else the usual one, else any. */
const choosePort = async (asked: string | undefined): Promise<number> => {
  if (asked === undefined) return (await freePort(usualPort)) ?? (await freePort(0)) ?? usualPort;
  if (/^\d{1,5}$/.test(asked) && Number(asked) > 0 && Number(asked) < 65_536) return Number(asked);
  throw new AcpError('validation-failed', `--port takes a port from 1 to 65535, not "${asked}".`);
};

/** The address that was asked for, else one of this machine that is free. */
const chooseAddress = async ({ globals }: Session, port: string | undefined): Promise<string> => {
  if (globals.url === undefined) return `http://127.0.0.1:${await choosePort(port)}`;
  if (port === undefined) return globals.url;
  throw new AcpError('validation-failed', '--url names a port already: give either --url or --port.');
};

// As in the service.yaml of `acp init`: public Agent Skills fit.
const publicSkillLimits = [
  'Service:Skills:MaxInstructionsLength=131072',
  'Service:Skills:MaxResourceContentLength=4194304',
  'Service:Skills:MaxResourcesPerSkill=200',
  'Service:Skills:Scripts:MaxScriptContentLength=262144',
  'Service:Skills:Scripts:MaxScriptsPerSkill=50',
];

/** The settings of the samples, on top of those of this call. Without --config no service.yaml is read. */
const quickstartConfig = async (session: Session, dataFolder: string, url: string) => {
  const { assetPath } = await import('../../core/files/assets.ts');
  const set = [
    `Host:Url=${url}`,
    `Host:LogLevel=warn`,
    `Host:Modules=${JSON.stringify([assetPath('samples/clock.mjs')])}`,
    `Service:Persistence:Sqlite:ConnectionString=${join(dataFolder, 'acp.db')}`,
    ...publicSkillLimits,
    `Service:Providers:Scripted:${sampleProvider}:File=${assetPath('samples/scripted-demo.yaml')}`,
  ];
  // What was set by hand counts more than the samples do.
  const globals = { ...session.globals, set: [...set, ...session.globals.set] };
  return readConfig({ ...session, globals, cwd: dataFolder });
};

/** Applies the sample agent and asks it something, over HTTP like any other client. */
const demonstrate = async (session: Session, { url, config }: Serving): Promise<number> => {
  const { terminal } = session;
  const [{ parseDefinitionDocuments }, { readAssetText }] = await Promise.all([
    import('../../core/documents/definition-documents.ts'),
    import('../../core/files/assets.ts'),
  ]);
  const transport = httpTransport({
    url,
    token: config.values.Host.AuthToken ?? undefined,
    userAgent: `acp/${version}`,
  });
  try {
    const client = createClient(transport);
    const [document] = parseDefinitionDocuments(readAssetText('samples/hello.yaml'), 'hello.yaml').documents;
    if (document === undefined) throw new AcpError('internal', 'The sample agent is missing from this build.');
    const name = String(document.value['name']);
    const applied = await applyDefinition(client, document, name);
    terminal.note(terminal.noteStyle.dim(`agent ${safeLine(name)}: ${applied.action}, version ${applied.version}`));
    if (!session.globals.json) await terminal.write(`\n${terminal.style.bold(`> ${question}`)}\n`);
    const connection = { client, transport, local: false };
    return (await runStreaming(session, connection, name, { message: question }, 'stdout')).exitCode;
  } finally {
    await transport.close();
  }
};

/** `url`: null where the service ends with the command. */
const nextSteps = async ({ terminal }: Session, url: string | null): Promise<void> => {
  const { isPackaged } = await import('../../core/files/assets.ts');
  const { bold } = terminal.style;
  const acp = isPackaged() ? 'acp' : 'bin/acp';
  const docs =
    url === null ? `${bold(`${acp} serve`)}, then ${bold('/docs')} of the address that it prints` : bold(`${url}/docs`);
  const steps = [
    `Put a real key:    ${bold(`${acp} init`)}, then a provider and its key in service.yaml, then ${bold(`${acp} serve`)}`,
    `Apply your agent:  ${bold(`${acp} agents apply -f my-agent.yaml`)}, then ${bold(`${acp} run my-agent "Hello"`)}`,
    `Open the docs:     ${docs}`,
  ];
  await terminal.write(`\n${steps.map((step) => `${step}\n`).join('')}`);
};

const quickstart = async (session: Session, { options }: Invocation): Promise<number> => {
  const dataFolder = resolve(session.cwd, String(options['data']));
  try {
    makeFolder(dataFolder, privateFolderMode);
  } catch (cause) {
    const { code = 'unknown error' } = cause as NodeJS.ErrnoException;
    throw new AcpError('store-unavailable', `The folder ${dataFolder} cannot be made (${code}).`, { cause });
  }
  const url = await chooseAddress(session, options['port'] as string | undefined);
  const config = await quickstartConfig(session, dataFolder, url);
  return serveUntilStopped(session, config, 'stderr', async (serving) => {
    const { terminal } = session;
    const shown = relative(session.cwd, dataFolder) || dataFolder;
    terminal.note(terminal.noteStyle.dim(`acp ${version} serves ${serving.url}, data in ${shown}`));
    const exitCode = await demonstrate(session, serving);
    if (exitCode !== 0) return exitCode;
    const ends = options['once'] === true;
    if (!session.globals.json) await nextSteps(session, ends ? null : serving.url);
    if (ends) return 0;
    if (serving.anonymous)
      terminal.note(
        terminal.noteStyle.dim(
          '\nEvery program of this machine is an administrator here; a service of `acp init` has a key.',
        ),
      );
    terminal.note(terminal.noteStyle.dim('\nServing until Ctrl-C.'));
    return undefined;
  });
};

/** `acp quickstart`: a service with a sample agent, asked once. */
export const registerQuickstart = (host: CommandHost): void => {
  host.program
    .command('quickstart')
    .description('start a service with a sample agent and watch it answer; no key, no network; --url sets the address')
    .option('--once', 'end after the answer')
    .option('--port <port>', 'port on the loopback address; default 7070, or a free one')
    .option('--data <folder>', 'where the store is kept', 'data')
    .action(host.act(quickstart));
};
