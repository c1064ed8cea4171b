import process from 'node:process';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { interruptedExitCode, onInterrupt } from '../interrupt.ts';

/** The question was left: `exitCode` is that of an interrupt, or null after the end of input (Ctrl-D). */
export interface Left {
  readonly left: true;
  readonly exitCode: number | null;
}

// Enough for what the terminal holds to be read; nobody reads a question and answers it in that time.
const flushMs = 30;

/** Throws away what was typed before a question is there to be read: it cannot be the answer to it. */
const discardTyped = async (): Promise<void> => {
  const { stdin } = process;
  stdin.setRawMode(true);
  const discard = (): void => undefined;
  stdin.on('data', discard);
  await delay(flushMs);
  stdin.off('data', discard);
  stdin.pause();
  stdin.setRawMode(false);
};

/** Asks for one line on the terminal of the process; stdin and stdout must be one. */
export const askLine = async (question: string): Promise<string | Left> => {
  const lines = createInterface({ input: process.stdin, output: process.stdout, terminal: true, historySize: 0 });
  let exitCode: number | null = null;
  const leave = (code: number): void => {
    exitCode = code;
    lines.close();
  };
  const release = onInterrupt((signal) => leave(interruptedExitCode[signal]));
  try {
    return await new Promise<string | Left>((resolve) => {
      // A terminal in raw mode sends no signal for Ctrl-C.
      lines.on('SIGINT', () => leave(interruptedExitCode.SIGINT));
      const leftOpen = (): void => {
        process.stdout.write('\n');
        resolve({ left: true, exitCode });
      };
      lines.on('close', leftOpen);
      lines.question(question, (answer) => {
        // Only this one: readline's own listener lets go of the keys, which would be shown once more by each question.
        lines.off('close', leftOpen);
        resolve(answer.trim());
      });
    });
  } finally {
    lines.close();
    release();
  }
};

/** Asks until one of the keys is given, of which `a` and `A` are two. Only what is typed after the question counts. */
export const askKey = async <K extends string>(question: string, keys: readonly K[]): Promise<K | Left> => {
  await discardTyped();
  for (;;) {
    const answer = await askLine(question);
    if (typeof answer !== 'string') return answer;
    const key = keys.find((candidate) => candidate === answer);
    if (key !== undefined) return key;
  }
};
