import type { Key as InkKey } from 'ink';
import { clusters } from '../../text/clusters.ts';

const namesByFlag = [
  ['upArrow', 'up'],
  ['downArrow', 'down'],
  ['leftArrow', 'left'],
  ['rightArrow', 'right'],
  ['pageUp', 'pageup'],
  ['pageDown', 'pagedown'],
  ['home', 'home'],
  ['end', 'end'],
  ['return', 'enter'],
  ['escape', 'escape'],
  ['tab', 'tab'],
  ['backspace', 'backspace'],
  ['delete', 'backspace'],
] as const satisfies readonly (readonly [keyof InkKey, string])[];

export type KeyName = (typeof namesByFlag)[number][1] | 'interrupt' | 'text';

/** A key as the screens know it. `text` is the character of a printable one, else empty. */
export interface Key {
  readonly name: KeyName;
  readonly text: string;
}

const named = (name: KeyName): Key => ({ name, text: '' });

const controls = /\p{Cc}/u;

const typed = (text: string): Key | null => {
  if (text === '\r' || text === '\n' || text === '\r\n') return named('enter');
  if (text === '\t') return named('tab');
  return controls.test(text) ? null : { name: 'text', text };
};

/** What was pressed. Several characters at once are a paste, or keys that came faster than they were read. */
export const readKeys = (input: string, key: InkKey): readonly Key[] => {
  if (key.ctrl) return input === 'c' ? [named('interrupt')] : [];
  const flag = namesByFlag.find(([name]) => key[name] === true);
  if (flag !== undefined) return [named(flag[1])];
  if (key.meta) return [];
  return [...clusters(input)].map(({ segment }) => typed(segment)).filter((one) => one !== null);
};
