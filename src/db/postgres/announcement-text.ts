import type { Topic } from '../announcements.ts';

/** Keys by the topic that they are of. */
export type Keys = ReadonlyMap<Topic, ReadonlySet<string>>;

/** What one process told in one notification. */
export interface AnnouncementText {
  /** Of the process that told it. */
  readonly sender: string;
  /** True: it could not keep what it had to tell, and anything may have changed. */
  readonly isAll: boolean;
  readonly keys: readonly (readonly [topic: string, keys: readonly string[]])[];
}

// A notification has less than 8000 bytes.
const mostBytes = 7900;
const all = '*';
const version = 'acp1';

/** As few notifications as hold all keys: the version and the sender, then a line for each topic. */
export const announcementTexts = (sender: string, keys: Keys): readonly string[] => {
  const head = `${version} ${sender}`;
  const texts: string[] = [];
  let text = head;
  let bytes = Buffer.byteLength(head);
  for (const [topic, names] of keys) {
    let isNamed = false;
    for (const key of names) {
      const size = Buffer.byteLength(key) + 1;
      if (bytes + size + topic.length + 1 > mostBytes) {
        texts.push(text);
        text = head;
        bytes = Buffer.byteLength(head);
        isNamed = false;
      }
      const part = isNamed ? ` ${key}` : `\n${topic} ${key}`;
      text += part;
      bytes += size + (isNamed ? 0 : topic.length + 1);
      isNamed = true;
    }
  }
  if (text !== head) texts.push(text);
  return texts;
};

/** Says that anything may have changed. */
export const announcementOfAll = (sender: string): string => `${version} ${sender}\n${all}`;

/** Says nothing but that the sender is heard. */
export const heartbeatText = (sender: string): string => `${version} ${sender}`;

/** Null: no program of ours has written it. */
export const readAnnouncement = (text: string): AnnouncementText | null => {
  const [head = '', ...lines] = text.split('\n');
  const [first, sender] = head.split(' ');
  if (first !== version || sender === undefined) return null;
  return {
    sender,
    isAll: lines.includes(all),
    keys: lines.flatMap((line) => {
      const [topic = '', ...keys] = line.split(' ');
      return topic === all ? [] : [[topic, keys] as const];
    }),
  };
};
