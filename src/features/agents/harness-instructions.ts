import type { HarnessContent } from './agents.content.ts';

const todoText =
  'Plan work of several steps with todo_write before you begin, keep the list true while you work, and set an entry to completed as soon as it is done.';
const fileText =
  'Keep notes and results that you need later in files (file_write, file_read): they outlast what you can see of the conversation.';
const modesText =
  'You work in one of two modes and change it with set_mode. In "plan" you read, think and ask, and change nothing; in "act" you carry the task out.';

/** Tells the model what its harness gives it; null when it gives nothing. */
const builtInText = (harness: HarnessContent): string | null => {
  const lines = [
    harness.disableTodo ? null : todoText,
    harness.disableFileMemory ? null : fileText,
    harness.disableModes ? null : modesText,
  ].filter((line) => line !== null);
  return lines.length === 0 ? null : lines.join('\n');
};

/** The harness's part of the system text: the definition's own, else the built-in one, and the mode. */
export const harnessText = (harness: HarnessContent | null, mode: string | null): string | null => {
  if (harness === null) return null;
  const text = harness.harnessInstructions ?? builtInText(harness);
  const modeText = mode === null || harness.disableModes ? null : `The current mode is "${mode}".`;
  const lines = [text, modeText].filter((line) => line !== null && line !== '');
  return lines.length === 0 ? null : lines.join('\n');
};
