/** Output of a process up to a bound over both streams together; what is beyond is counted and dropped. */
export class ScriptOutput {
  readonly #chunks: Record<'stdout' | 'stderr', Uint8Array[]> = { stdout: [], stderr: [] };
  #left: number;
  #omitted = 0;

  constructor(maxBytes: number) {
    this.#left = maxBytes;
  }

  add(stream: 'stdout' | 'stderr', chunk: Uint8Array): void {
    const kept = chunk.subarray(0, this.#left);
    this.#left -= kept.length;
    this.#omitted += chunk.length - kept.length;
    if (kept.length > 0) this.#chunks[stream].push(kept);
  }

  /** What the model gets. Bytes that are no UTF-8 become U+FFFD. */
  text(exitCode: number): string {
    const lines = [
      `exit_code: ${exitCode}`,
      'stdout:',
      ...this.#lines('stdout'),
      'stderr:',
      ...this.#lines('stderr'),
      ...(this.#omitted === 0 ? [] : [`[output truncated: ${this.#omitted} bytes omitted]`]),
    ];
    return lines.join('\n');
  }

  #lines(stream: 'stdout' | 'stderr'): string[] {
    const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(Buffer.concat(this.#chunks[stream]));
    return text === '' ? [] : [text.replace(/\r?\n$/, '')];
  }
}
