import type { GivenFile, GivenMessage, GivenParts } from './given-parts.ts';

const follows = 'What it returned as files follows in the next message.';

/**
 * Files that tools of the caller's program have returned, such as an image that a coding program has looked at. Models take files
 * from a user alone, so that they stand behind the results that belong together.
 */
export class ResultFiles {
  #waiting: { readonly callId: string; readonly files: readonly GivenFile[] }[] = [];

  /** The text of a result. */
  take(callId: string, { text, files }: GivenParts): string {
    if (files.length === 0) return text;
    this.#waiting.push({ callId, files });
    return text.trim() === '' ? follows : `${text}\n${follows}`;
  }

  /** Puts what has been taken behind the results. */
  moveTo(given: GivenMessage[]): void {
    for (const { callId, files } of this.#waiting)
      given.push({ role: 'User', text: `Returned by the tool call ${callId}:`, files });
    this.#waiting = [];
  }
}
