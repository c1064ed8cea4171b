import assert from 'node:assert/strict';
import { overHttp } from '../support/app.ts';

const million = 1_000_000;
const list = (item: string, count: number): string => `[${Array(count).fill(item).join(',')}]`;

overHttp(
  'JOB-13 a body of too many values, members or names is refused before it is parsed, and an item of many members unread',
  async (open) => {
    const { url } = await open({ agents: [{ name: 'helper' }] });
    const save = async (payload: string, end = '}') => {
      const response = await fetch(`${url}/api/schedules/all`, {
        method: 'PUT',
        headers: { 'content-type': 'application/json' },
        body: `{"handlerKey":"acp.agent-batch","targetName":"helper","payload":${payload}${end}`,
      });
      const { code, detail } = (await response.json()) as { code?: string; detail?: string };
      return [response.status, code ?? null, detail ?? null];
    };
    const refusal = (problem: string) => [400, 'validation-failed', `The body has more than ${problem}.`];
    const tooMany = refusal('1000000 values');
    for (const item of ['1', '"a"']) assert.deepEqual(await save(list(item, 2.2 * million)), tooMany, item);
    // Each takes many times the memory and the time of a number.
    for (const item of ['{}', '[]', ' { } ', '{"a":1}'])
      assert.deepEqual(await save(list(item, 2 * million)), refusal('1000000 members, lists and objects'), item);
    // Small bodies may have less, or those of two bytes for each value would cost tens of times what others do.
    assert.deepEqual(await save(list('1', million)), refusal('250000 values'));
    assert.deepEqual(await save(list('1', 1.2 * million)), refusal('500000 values'), 'for each full mebibyte');
    assert.deepEqual(await save(list('{}', 150_000)), refusal('100000 members, lists and objects'));
    const names = Array.from({ length: 20_000 }, (_, n) => `"k${n}":1`).join();
    assert.deepEqual(await save(`{${names}}`), refusal('10000 different member names or orders of them'));
    // What is behind them is not looked at.
    assert.deepEqual(await save(list('1', 2.2 * million), ' and no more JSON'), tooMany);
    assert.deepEqual(await save(`[${list('1', 2.2 * million)}]`), tooMany, 'wherever they are');
    // Four are the definition, its two names and the list.
    assert.deepEqual(await save(list('1111', million - 3)), tooMany);
    const [status, , detail] = await save(list('1111', million - 4));
    assert.deepEqual([status, detail], [400, 'payload has 999996 elements, and at most 1000 are allowed.']);
    // Those within the limit are counted by whoever takes them.
    assert.deepEqual(await save(list('{}', 90_000)), [
      400,
      'validation-failed',
      'payload has 90000 elements, and at most 1000 are allowed.',
    ]);
    const members = Array.from({ length: 1001 }, (_, n) => `"k${n}":1`).join(',');
    assert.deepEqual(await save(`[{${members}}]`), [
      400,
      'validation-failed',
      'payload[0] has more than 1000 members.',
    ]);
    // What stands in a text is no value of the body.
    assert.deepEqual(await save(`["${',[{'.repeat(million / 2)}"]`), [200, null, null]);
  },
);
