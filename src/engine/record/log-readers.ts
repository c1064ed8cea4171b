import type { Frame, FrameSource } from '../../contract/operation.ts';

type Listener = (frames: readonly Frame[]) => unknown;

/** Who follows the log of a run while it executes. */
export class LogReaders {
  /** Null until somebody subscribes. */
  #listeners: Map<Listener, () => void> | null = null;
  #ended = false;

  get ended(): boolean {
    return this.#ended;
  }

  get isEmpty(): boolean {
    return this.#listeners === null || this.#listeners.size === 0;
  }

  subscribe(onFrames: Listener, onEnd: () => void): () => void {
    if (this.#ended) {
      onEnd();
      return () => undefined;
    }
    this.#listeners ??= new Map();
    const listeners = this.#listeners;
    listeners.set(onFrames, onEnd);
    return () => listeners.delete(onFrames);
  }

  source(): FrameSource {
    const early: Frame[] = [];
    let isOver = false;
    const stop = this.subscribe(
      (frames) => early.push(...frames),
      () => {
        isOver = true;
      },
    );
    return {
      subscribe: (onFrames, onEnd) => {
        stop();
        if (early.length > 0) onFrames(early);
        if (isOver) onEnd();
        return isOver ? () => undefined : this.subscribe(onFrames, onEnd);
      },
    };
  }

  deliver(frames: readonly Frame[]): void {
    if (this.#listeners === null) return;
    for (const listener of this.#listeners.keys()) listener(frames);
  }

  /** Tells everybody that nothing follows. */
  end(): void {
    this.#ended = true;
    if (this.#listeners === null) return;
    const ends = [...this.#listeners.values()];
    this.#listeners.clear();
    for (const end of ends) end();
  }
}
