import assert from 'node:assert/strict';
import { applyDeclarations, type Outcome } from '../../src/cli/declarations/apply-declarations.ts';
import { readDeclarations } from '../../src/cli/declarations/read-declarations.ts';
import type { Terminal } from '../../src/cli/output/terminal.ts';
import { forEachDurableService } from '../support/app.ts';

const agent = (instructions: string) => ({ name: 'shared', model: { provider: 'demo', model: 'm' }, instructions });

/** Declarations as from the standard input; JSON is YAML. */
const declared = (document: object) =>
  readDeclarations(['-'], { readInput: async () => JSON.stringify(document) } as unknown as Terminal);

forEachDurableService('a change that somebody makes while files are applied stays, and is told', async (open) => {
  const { client } = await open();
  await client.agents.create({ body: agent('Mine, before.') });
  const racing = {
    ...client,
    agents: {
      ...client.agents,
      async save(input: Parameters<typeof client.agents.save>[0]) {
        // After the comparison, and before what comes of it is saved.
        await client.agents.save({ params: { name: 'shared' }, body: agent('Theirs.') });
        return client.agents.save(input);
      },
    },
  } as typeof client;
  const outcomes: Outcome[] = [];
  for await (const outcome of applyDeclarations(racing, await declared(agent('Mine, after.')))) outcomes.push(outcome);
  assert.deepEqual(
    outcomes.map(({ action, exitCode }) => [action, exitCode]),
    [['failed', 5]],
  );
  const { body } = await client.agents.get({ params: { name: 'shared' } });
  assert.equal(body.definition?.instructions, 'Theirs.');
});
