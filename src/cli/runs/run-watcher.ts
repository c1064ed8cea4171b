import type { Client } from '../../client/client.ts';
import type { RunRecord } from '../../features/runs/runs.schema.ts';

const pageSize = 200;

/**
 * Finds runs as they appear, children included, oldest first. The first look gives those in progress, each later one
 * every run that started since.
 */
export const runWatcher = (
  client: Client,
  agentName: string | undefined,
  signal: AbortSignal,
): (() => Promise<readonly RunRecord[]>) => {
  let newest: string | null = null;
  const page = async (skip: number): Promise<readonly RunRecord[]> => {
    const query = { includeChildren: true, skip, take: pageSize, ...(agentName === undefined ? {} : { agentName }) };
    return (await client.runs.list({ query, signal })).body;
  };
  const since = async (known: string): Promise<RunRecord[]> => {
    const found = new Map<string, RunRecord>();
    for (let skip = 0; ; skip += pageSize) {
      const rows = await page(skip);
      // Ids rise with time and the list is newest first, so a known one ends the look. A run that starts meanwhile
      // pushes the rows down by one, which the map takes care of.
      for (const row of rows) if (row.id > known) found.set(row.id, row);
      const last = rows.at(-1);
      if (last === undefined || rows.length < pageSize || last.id <= known) return [...found.values()];
    }
  };
  return async () => {
    const isFirst = newest === null;
    const found = isFirst ? [...(await page(0))] : await since(newest ?? '');
    newest = found[0]?.id ?? newest ?? '';
    const wanted = isFirst ? found.filter(({ status }) => status === 'Queued' || status === 'Running') : found;
    return wanted.reverse();
  };
};
