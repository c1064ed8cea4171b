import type { TestEvent } from 'node:test/reporters';

/** A reporter of node:test: the names of the tests that ran and passed, one JSON text a line. */
// biome-ignore lint/style/noDefaultExport: node:test takes a reporter from the default export.
export default async function* ranTests(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const { type, data } of events) {
    if (type !== 'test:pass') continue;
    const isOff = [data.skip, data.todo].some((value) => value !== undefined && value !== false);
    if (!isOff && data.details.type !== 'suite') yield `${JSON.stringify(data.name)}\n`;
  }
}
