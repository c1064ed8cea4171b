import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFolder } from './support.ts';

const judges = `
export default {
  name: 'judges',
  judges: [
    { name: 'length', judge: ({ output }) => ({ score: output.length, reason: 'So many characters.' }) },
    {
      name: 'picky',
      judge({ input }) {
        if (input === 'Hi') throw new RangeError('never shown');
        return { score: null };
      },
    },
  ],
};
`;

test('RUN-47 runs judge: scores as a table, failures on stderr with an exit code', async (t) => {
  const folder = createFolder(t);
  folder.write('judges.mjs', judges);
  await folder.acp(['agents', 'apply', '-f', 'hello.yaml']);
  const run = async (message: string): Promise<string> => {
    const { stdout } = await folder.acp(['run', 'hello', message, '--json']);
    return (JSON.parse(stdout) as { runId: string }).runId;
  };
  const set = ['--set', 'Host:Modules=["./modules/clock.mjs","./judges.mjs"]'];
  const first = await run('Hello');
  const judged = await folder.acp(['runs', 'judge', first, ...set]);
  assert.deepEqual([judged.code, judged.stderr], [0, '']);
  assert.match(judged.stdout, /^name +value +comment .*\nlength +12 +So many characters\. /i);
  const json = await folder.acp(['runs', 'judge', first, '--json', ...set]);
  assert.deepEqual(
    (JSON.parse(json.stdout) as { scores: { name: string; source: string }[] }).scores.map((score) => score.source),
    ['judge:length'],
  );
  const failed = await folder.acp(['runs', 'judge', await run('Hi'), ...set]);
  assert.deepEqual([failed.code, failed.stderr], [7, 'picky failed: RangeError; it can be asked again\n']);
  assert.match(failed.stdout, /length +12/);
  const without = await folder.acp(['runs', 'judge', first]);
  assert.deepEqual([without.code, without.stdout], [0, '']);
  assert.match(without.stderr, /^Nothing was scored: /);
  assert.equal((await folder.acp(['runs', 'judge', '0190b6a2-0000-7000-8000-000000000000'])).code, 4);
});
