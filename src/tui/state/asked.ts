import { safeLine } from '../../text/text-width.ts';

/** What runs were asked, on one line, by their ids. Empty: it was not recorded, or is nothing to show as text. */
export type Asked = ReadonlyMap<string, string>;

/** More than the widest row shows. */
const longest = 400;
// A line each: whoever scrolls back that far waits a moment for what has been forgotten.
const most = 2_000;

interface Message {
  readonly role: string;
  readonly contents: readonly { readonly type: string }[];
}

/** The text of the last message of a person. */
export const askedText = (messages: readonly Message[]): string => {
  const last = messages.findLast(({ role }) => role === 'User');
  const texts = (last?.contents ?? []).flatMap((part) =>
    part.type === 'Text' && 'text' in part && typeof part.text === 'string' ? part.text : [],
  );
  return safeLine(texts.join(' ').slice(0, longest)).trim();
};

export const withAsked = (asked: Asked, runId: string, text: string): Asked => {
  const latest = asked.size < most ? asked : [...asked].slice(-most / 2);
  return new Map(latest).set(runId, text);
};
