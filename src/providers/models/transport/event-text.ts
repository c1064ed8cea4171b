import type { WireBody, WireResponse } from './wire-body.ts';

/** A body that is there. */
const bodyOf = (text: string): WireBody =>
  new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(Buffer.from(text));
      controller.close();
    },
  });

export const textOf = async (body: WireBody): Promise<string> => {
  const reader = body.getReader();
  const chunks: Uint8Array[] = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return Buffer.concat(chunks).toString();
    chunks.push(value);
  }
};

/** The same answer, of which the body is there. */
export const withText = (response: WireResponse, text: string): WireResponse => ({ ...response, body: bodyOf(text) });

/** A list of chunks, as Gemini streams without a request for events, as the events that it stands for. */
export const asEvents = (chunks: readonly unknown[]): string =>
  chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('');
