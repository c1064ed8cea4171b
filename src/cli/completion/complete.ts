import { homedir } from 'node:os';
import process from 'node:process';
import { setTimeout as pause } from 'node:timers/promises';
import type { Command } from 'commander';
import { fitText, safeLine } from '../../text/text-width.ts';
import { connectServing, type Target } from '../connect.ts';
import { type Candidate, listAt } from './completion-lists.ts';
import { type Place, placeOf } from './completion-place.ts';
import { filesAnswer } from './completion-script.ts';
import { knownWords, takesFile } from './completion-words.ts';

type Surroundings = Pick<Target, 'environment' | 'cwd'>;

// Whoever types waits for the answer of the service.
const limitMs = 1000;
const noteWidth = 60;

// bash puts a word into the line as it is: one that a shell could read as more than a word is left out.
const plainWord = /^[A-Za-z0-9][A-Za-z0-9._@/+:-]{0,199}$/;

const home = (path: string): string => path.replace(/^~(?=\/)/, homedir());

/** How the command would find its service: by the options that stand in the line already. */
const targetOf = ({ options }: Place, { environment, cwd }: Surroundings): Target => {
  const last = (name: string): string | undefined => options[name]?.at(-1);
  const [url, tokenFile, config] = [last('url'), last('tokenFile'), last('config')];
  return {
    environment,
    cwd,
    globals: {
      ...(url === undefined ? {} : { url }),
      ...(tokenFile === undefined ? {} : { tokenFile: home(tokenFile) }),
      ...(config === undefined ? {} : { config: home(config) }),
      set: options['set'] ?? [],
      json: false,
      color: false,
    },
  };
};

const listed = async (place: Place, surroundings: Surroundings): Promise<readonly Candidate[]> => {
  const list = listAt(place);
  if (list === undefined) return [];
  const candidates = await connectServing(targetOf(place, surroundings), (client) =>
    Promise.race([
      list({ client, place, signal: AbortSignal.timeout(limitMs) }),
      // Looking up the name of a host heeds no signal.
      pause(limitMs, [], { ref: false }),
    ]),
  );
  return (candidates ?? []).filter(({ value }) => plainWord.test(value));
};

const answerLine = (place: Place, { value, note }: Candidate): string => {
  const shown = fitText(safeLine(note ?? '').trim(), noteWidth);
  return `${place.prefix}${value}${shown === '' ? '' : `\t${shown}`}`;
};

/** What may stand in place of the last of the words after `acp`, a line each. Design: docs/design/command-line.md. */
export const completions = async (
  program: Command,
  line: readonly string[],
  surroundings: Surroundings,
): Promise<string[]> => {
  const place = placeOf(program, line);
  if (place === null) return [];
  if (takesFile(place)) return [filesAnswer];
  const words = knownWords(program, place);
  // No service, no permission, not in time: a completion has nobody to tell it to.
  const candidates = words.length > 0 ? words : await listed(place, surroundings).catch(() => []);
  return candidates.filter(({ value }) => value.startsWith(place.typed)).map((each) => answerLine(place, each));
};

/** Answers a shell and ends the process: a look-up that is still under way would hold the line of whoever types. */
export const answerShell = async (
  program: Command,
  words: readonly string[],
  surroundings: Surroundings,
): Promise<never> => {
  const lines = await completions(program, words, surroundings).catch(() => []);
  await new Promise<void>((resolve) => {
    process.stdout.write(lines.map((line) => `${line}\n`).join(''), () => resolve());
  });
  process.exit(0);
};
