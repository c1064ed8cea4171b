import type { Client } from '../../../src/client/client.ts';
import type { BundledRun, RunBundle } from '../../../src/features/replays/bundle.format.ts';
import { openBundle } from '../../../src/features/replays/index.ts';
import { collect } from '../runs/run-calls.ts';

/** The text of a bundle as it stands in the file before it is packed. */
export const bundleTextOf = async (client: Client, runId: string, redact = false): Promise<string> => {
  const { frames } = await client.replays.bundle({ params: { runId }, query: { redact } });
  return (await collect(frames)).map(({ data }) => `${data}\n`).join('');
};

/** Opens the text of a bundle as a file's lines are opened. */
export const openText = (text: string): Promise<RunBundle> =>
  openBundle(() => (text === '' ? [] : (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n')));

export const bundleOf = async (client: Client, runId: string, redact = false): Promise<RunBundle> =>
  openText(await bundleTextOf(client, runId, redact));

export const runsOf = async (bundle: RunBundle): Promise<BundledRun[]> => {
  const runs: BundledRun[] = [];
  for await (const run of bundle.runs()) runs.push(run);
  return runs;
};
