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

  /** `rest`: where the log goes on when this one has ended before the run; null: nowhere. */
  source(rest: (() => FrameSource | null) | null): FrameSource {
    const early: Frame[] = [];
    let isOver = false;
    const stop = this.subscribe(
      (frames) => early.push(...frames),
      () => {
        isOver = true;
      },
    );
    return {
      subscribe: (onFrames, onEnd, drained) => {
        stop();
        if (early.length > 0) onFrames(early);
        if (rest !== null) return this.#subscribeOn(rest, onFrames, onEnd, drained);
        if (isOver) onEnd();
        return isOver ? () => undefined : this.subscribe(onFrames, onEnd);
      },
    };
  }

  #subscribeOn(
    rest: () => FrameSource | null,
    onFrames: Listener,
    onEnd: () => void,
    drained: (() => Promise<void> | undefined) | undefined,
  ): () => void {
    let isGone = false;
    let leave: () => void = () => undefined;
    const goOn = (): void => {
      if (isGone) return;
      const source = rest();
      if (source === null) onEnd();
      else leave = source.subscribe(onFrames, onEnd, drained);
    };
    const stop = this.subscribe(onFrames, goOn);
    return () => {
      isGone = true;
      stop();
      leave();
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
