import { version } from '../../core/version.ts';
import { operations } from '../../operations.ts';
import type { CommandHost } from '../command-host.ts';
import { jsonText } from '../output/print-reply.ts';

/** `acp openapi`: the description that a service gives at `/openapi.json`, without one. */
export const registerOpenapi = (host: CommandHost): void => {
  host.program
    .command('openapi')
    .description('print the OpenAPI 3.1 description of the API')
    .option('--prefix <path>', 'mount prefix of the operations', '')
    .option('--yaml', 'as YAML')
    .action(
      host.act(async ({ terminal }, { options }) => {
        const [{ buildOpenApi }, { operationEntries }] = await Promise.all([
          import('../../http/openapi.ts'),
          import('../../core/dispatch.ts'),
        ]);
        const prefix = String(options['prefix']);
        const document = buildOpenApi(operationEntries(operations), { version, prefix, title: 'Agent Control Plane' });
        if (options['yaml'] !== true) return terminal.writeJson(jsonText(document));
        const { stringify } = await import('yaml');
        // Without aliases: a reader of the text should not have to resolve them.
        await terminal.write(stringify(document, { aliasDuplicateObjects: false, lineWidth: 0 }));
      }),
    );
};
