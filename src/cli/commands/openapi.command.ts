import type { ApiTable } from '../../contract/operation.ts';
import { version } from '../../core/version.ts';
import { operations } from '../../operations.ts';
import type { CommandHost } from '../command-host.ts';
import { jsonText } from '../output/print-reply.ts';
import { readConfig } from '../read-config.ts';
import type { Session } from '../session.ts';

/** The operations of the service that a configuration describes, and its prefix; without a configuration, of the product. */
const describedTable = async (session: Session): Promise<{ readonly table: ApiTable; readonly prefix: string }> => {
  const { file, values } = await readConfig(session);
  if (file === null && session.globals.set.length === 0) return { table: operations, prefix: '' };
  const { describedOperations } = await import('../../app/mounted-operations.ts');
  return { table: describedOperations(values), prefix: values.Host.Prefix };
};

/** `acp openapi`: the description that a service gives at `/openapi.json`, without one. */
export const registerOpenapi = (host: CommandHost): void => {
  host.program
    .command('openapi')
    .description('print the OpenAPI 3.1 description of the configured service, else of the complete API')
    .option('--prefix <path>', 'mount prefix of the operations; default: Host:Prefix')
    .option('--yaml', 'print as YAML')
    .action(
      host.act(async (session, { options }) => {
        const { terminal } = session;
        const [{ buildOpenApi }, { operationEntries }, { table, prefix }] = await Promise.all([
          import('../../http/openapi.ts'),
          import('../../core/dispatch.ts'),
          describedTable(session),
        ]);
        const mountedAt = typeof options['prefix'] === 'string' ? options['prefix'] : prefix;
        const document = buildOpenApi(operationEntries(table), {
          version,
          prefix: mountedAt,
          title: 'Agent Control Plane',
        });
        if (options['yaml'] !== true) return terminal.writeJson(jsonText(document));
        const { stringify } = await import('yaml');
        // Without aliases: a reader of the text should not have to resolve them.
        await terminal.write(stringify(document, { aliasDuplicateObjects: false, lineWidth: 0 }));
      }),
    );
};
