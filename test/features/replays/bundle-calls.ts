import type { Client } from '../../../src/client/client.ts';
import type { RunBundle } from '../../../src/features/replays/bundle.format.ts';
import { readBundle } from '../../../src/features/replays/index.ts';
import { collect } from '../runs/run-calls.ts';

/** The text of a bundle as it stands in the file before it is packed. */
export const bundleTextOf = async (client: Client, runId: string, redact = false): Promise<string> => {
  const { frames } = await client.replays.bundle({ params: { runId }, query: { redact } });
  return (await collect(frames)).map(({ data }) => `${data}\n`).join('');
};

export const bundleOf = async (client: Client, runId: string, redact = false): Promise<RunBundle> =>
  readBundle(await bundleTextOf(client, runId, redact));
