/** Most files that one result of another system leaves behind as attachments: no model reads more, and each is stored. */
const maxResultFiles = 32;

/** Counts the files of one result, whichever side sent it. */
export class ResultFiles {
  #taken = 0;
  #leftOut = 0;

  /** False: there were as many as a result may have, and this one is left out. */
  take(): boolean {
    if (this.#taken < maxResultFiles) {
      this.#taken += 1;
      return true;
    }
    this.#leftOut += 1;
    return false;
  }

  /** A note for the model and the record on the files that were left out; null: none was. */
  get note(): string | null {
    if (this.#leftOut === 0) return null;
    const files = this.#leftOut === 1 ? '1 more file was' : `${this.#leftOut} more files were`;
    return `[${files} left out: a result may have ${maxResultFiles}]`;
  }
}
