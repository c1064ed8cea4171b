import type { FrameSource, StreamReply } from '../../contract/operation.ts';

/** Messages of JSON-RPC on their way to a caller that may not read them yet. */
export const messageStream = (): {
  readonly send: (message: unknown) => void;
  readonly end: () => void;
  readonly reply: StreamReply;
} => {
  const waiting: string[] = [];
  let isOver = false;
  let told: ((texts: readonly string[]) => void) | null = null;
  let ended: (() => void) | null = null;
  const stream: FrameSource = {
    subscribe(onFrames, onEnd) {
      told = (texts) => onFrames(texts.map((data) => ({ event: 'message', data })));
      ended = onEnd;
      if (waiting.length > 0) told(waiting.splice(0));
      if (isOver) onEnd();
      return () => {
        told = () => undefined;
        ended = null;
      };
    },
  };
  return {
    send(message) {
      if (isOver) return;
      const text = JSON.stringify(message);
      if (told === null) waiting.push(text);
      else told([text]);
    },
    end() {
      if (isOver) return;
      isOver = true;
      ended?.();
    },
    reply: { status: 200, framing: 'data', stream },
  };
};
