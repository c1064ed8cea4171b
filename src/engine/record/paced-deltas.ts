// A provider that sends a token every few milliseconds would make a frame of each. Text that follows the previous delta
// sooner than this is held until the interval is over, so that a reader sees at most 50 frames a second per run.
const intervalMs = 20;

export type DeltaType = 'message.delta' | 'reasoning.delta';

export interface Delta {
  readonly type: DeltaType;
  readonly messageId: string;
  text: string;
}

interface PacedDeltasPorts {
  now(): number;
  /** Whether somebody may wait for the first text of a message. */
  isFollowed(): boolean;
  push(delta: Readonly<Delta>): void;
}

/** Streamed text of one run, in pieces that are apart in time: texts of a message are joined until it is theirs. */
export class PacedDeltas {
  readonly #ports: PacedDeltasPorts;
  #held: Delta | null = null;
  #lastAt = 0;
  #lastMessage = '';
  #timer: NodeJS.Timeout | null = null;

  constructor(ports: PacedDeltasPorts) {
    this.#ports = ports;
  }

  add(type: DeltaType, messageId: string, text: string): void {
    const held = this.#held;
    if (held !== null) {
      if (held.type === type && held.messageId === messageId) {
        held.text += text;
        return;
      }
      this.release();
    }
    const now = this.#ports.now();
    const isDue = this.#lastMessage !== type + messageId || now - this.#lastAt >= intervalMs;
    if (isDue && this.#ports.isFollowed()) {
      this.#push({ type, messageId, text }, now);
      return;
    }
    this.#held = { type, messageId, text };
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      this.release();
    }, intervalMs);
  }

  /** What is held goes out now. */
  release(): void {
    const held = this.#held;
    if (held === null) return;
    this.#held = null;
    this.stop();
    this.#push(held, this.#ports.now());
  }

  /** Nothing goes out by itself any more. */
  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #push(delta: Delta, now: number): void {
    this.#lastAt = now;
    this.#lastMessage = delta.type + delta.messageId;
    this.#ports.push(delta);
  }
}
