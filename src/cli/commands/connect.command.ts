import { Argument } from 'commander';
import { createClient } from '../../client/client.ts';
import { httpTransport } from '../../client/http-transport.ts';
import { roleAtLeast } from '../../contract/authority.ts';
import { AcpError } from '../../contract/errors.ts';
import { doorAddress, doorProblem } from '../client-doors.ts';
import { type Connectable, connectable, snippetFor } from '../client-snippets.ts';
import { type CommandHost, covers } from '../command-host.ts';
import { type Owner, servingAddress, type Target } from '../connect.ts';
import { readConfig } from '../read-config.ts';

const failedExitCode = 1;

/** The list of models needs less than a run does, and a run would cost something. */
const runProblem = async ({ url, token }: Owner): Promise<string | null> => {
  const transport = httpTransport({ url, token });
  try {
    const { body } = await createClient(transport).keys.whoami({});
    const mayRun =
      body.role !== null &&
      roleAtLeast(body.role, 'Operator') &&
      (body.scopes === null || body.scopes.includes('RunsWrite'));
    return mayRun
      ? null
      : 'The credential may list models and not start runs: it lacks the role Operator or the scope RunsWrite.';
  } finally {
    await transport.close();
  }
};

const scopes: Readonly<Record<Connectable, string>> = {
  openai: '--scope RunsWrite --scope AgentsRead --scope RunsRead',
  'claude-code': '--scope ExternalInvoke',
  cursor: '--scope ExternalInvoke',
  vscode: '--scope ExternalInvoke',
};

/** The check had another credential than the one that the snippet names. */
const variableNote = (client: Connectable): string =>
  `ACP_TOKEN has to be set where that is used, such as by: export ACP_TOKEN="$(acp keys create ${client} ${scopes[client]})"`;

/** A file names the process that has it; where processes share a store nothing says at which address one listens. */
const notFound = async (target: Target): Promise<AcpError> => {
  const { Provider } = (await readConfig(target)).values.Service.Persistence;
  return new AcpError(
    'cannot-connect',
    Provider === 'Sqlite'
      ? 'No service has the configured store.'
      : 'The configured store is one that processes share, and does not say where a service listens.',
  );
};

/** `acp connect`: the snippet goes to stdout, and whether it works to stderr. */
export const registerConnect = (host: CommandHost): void => {
  const command = host.program
    .command('connect')
    .description(
      'print the settings with which a client of the OpenAI API or of MCP uses the service, and check that they work',
    )
    .addArgument(new Argument('<client>').choices(connectable))
    .option('--path <path>', 'path of the MCP server; default: /mcp');
  covers(command, 'keys.whoami').action(
    host.act(async (session, { args, options }) => {
      const { terminal, globals, print } = session;
      const [client] = args as [Connectable];
      const path = options['path'] as string | undefined;
      if (path !== undefined && (client === 'openai' || !path.startsWith('/')))
        throw new AcpError('validation-failed', '--path is for clients of MCP, and begins with a slash.');
      const serving = await servingAddress(session);
      if (serving === null) throw await notFound(session);
      const address = doorAddress(client, serving.url, path);
      const { place, text } = snippetFor(client, address);
      const problem =
        (await doorProblem(client, address, serving.token)) ?? (client === 'openai' ? await runProblem(serving) : null);
      if (globals.json) await print({ client, address, snippet: text, problem });
      else {
        terminal.note(place);
        await terminal.write(text);
        terminal.note(problem ?? 'It works: the service has answered with this credential.');
        const isNamed = globals.tokenFile === undefined && (session.environment['ACP_TOKEN'] ?? '') !== '';
        if (!isNamed && text.includes('ACP_TOKEN')) terminal.note(variableNote(client));
      }
      return problem === null ? 0 : failedExitCode;
    }),
  );
};
