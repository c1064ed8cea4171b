import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { Command } from 'commander';
import { AcpError } from '../../contract/errors.ts';
import type { Frame } from '../../contract/operation.ts';
import { safeLine } from '../../text/text-width.ts';
import { type CommandHost, covers } from '../command-host.ts';
import { requireFree, writeWhole } from '../files/write-whole.ts';

interface Written {
  runs: number;
  /** What the bundle could not hold, such as the definition of an agent that was deleted. */
  readonly missing: { readonly runId: string; readonly what: string }[];
}

/** What a run of the bundle lacks; nothing for every other line. */
const missingIn = (line: string): Written['missing'] => {
  const [, runId] = /^\{"section":"runs\/([^"]+)\/start"/.exec(line.slice(0, 80)) ?? [];
  if (runId === undefined) return [];
  const { data } = JSON.parse(line) as { data?: { missing?: readonly string[] } };
  return (data?.missing ?? []).map((what) => ({ runId, what }));
};

const isRecord = /^\{"section":"runs\/[^"]+\/record"/;

/** The lines of the file; a stream that ends without the manifest has lost its end. */
const linesOf = async function* (frames: AsyncIterable<Frame>, written: Written): AsyncGenerator<string> {
  let last = '';
  for await (const { event, data } of frames) {
    if (event !== 'line') continue;
    last = data;
    if (isRecord.test(data.slice(0, 80))) written.runs += 1;
    written.missing.push(...missingIn(data));
    yield `${data}\n`;
  }
  if (!last.startsWith('{"section":"manifest"'))
    throw new AcpError('cannot-connect', 'The bundle did not arrive whole; its export can be tried again.');
};

/** Packed while it is written, so that the memory this takes does not grow with the bundle. */
const packed = (lines: AsyncIterable<string>): AsyncIterable<Uint8Array> => {
  const gzip = createGzip();
  // What fails ends the stream with its error, which its reader gets.
  pipeline(Readable.from(lines), gzip).catch((error: Error) => gzip.destroy(error));
  return gzip;
};

/** `acp runs export`: a run tree as one file. */
export const registerRunsExport = (runs: Command, host: CommandHost): void => {
  const command = runs
    .command('export')
    .description('export a run tree to one file that can be replayed without a service')
    .argument('<run-id>')
    .requiredOption('-o, --output <file>', 'file to write, such as run.acp')
    .option('--force', 'replace an existing file')
    .option('--redact', 'replace texts with their lengths and hashes')
    .addHelpText(
      'after',
      '\nThe export has the complete tree, given any run of it. Replay it with: acp replay <file>\n',
    );
  covers(command, 'replays.bundle').action(
    host.act(async ({ terminal, globals, print, cwd, connected }, { args, options }) => {
      const [runId] = args as [string];
      const path = resolve(cwd, String(options['output']));
      const replaces = options['force'] === true;
      if (!replaces) await requireFree(path);
      await connected(async ({ client }) => {
        const query = options['redact'] === true ? { redact: true } : {};
        const { frames } = await client.replays.bundle({ params: { runId }, query, signal: terminal.closed });
        const written: Written = { runs: 0, missing: [] };
        await writeWhole(path, cwd, packed(linesOf(frames, written)), { replaces });
        const { runs, missing } = written;
        const { size: bytes } = await stat(path);
        if (globals.json) return print({ path, runs, bytes, missing });
        terminal.note(`Wrote ${path}: ${runs} ${runs === 1 ? 'run' : 'runs'}, ${bytes} bytes.`);
        if (missing.length === 0) return;
        for (const { runId, what } of missing)
          terminal.note(`${terminal.noteStyle.yellow('missing:')} run ${runId}: ${safeLine(what)}`);
        terminal.note(
          'A replay needs what is missing; `acp replay FILE --with DEFINITION` brings a definition of its own.',
        );
      });
    }),
  );
};
