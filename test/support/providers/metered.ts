import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

export interface MeteredProvider {
  readonly origin: string;
  /** Per call, in their order: the cap that came with it, and what was counted. */
  readonly calls: readonly { readonly cap: number | null; readonly input: number; readonly output: number }[];
  close(): void;
}

/**
 * Chat completions that count: four bytes of the messages are a token, and an answer is as long as `wanted` says unless
 * the cap of the call is lower, as with real providers. An answer takes `delayMs`. Close it when the test is over.
 */
export const openMeteredProvider = async (
  wanted: (messages: string) => number,
  delayMs = 0,
): Promise<MeteredProvider> => {
  const calls: { cap: number | null; input: number; output: number }[] = [];
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const part of request) text += String(part);
    const body = JSON.parse(text) as { messages: unknown; max_tokens?: number; max_completion_tokens?: number };
    const cap = body.max_completion_tokens ?? body.max_tokens ?? null;
    const messages = JSON.stringify(body.messages);
    const input = Math.ceil(messages.length / 4);
    const wish = wanted(messages);
    const output = Math.min(wish, cap ?? wish);
    calls.push({ cap, input, output });
    if (delayMs > 0) await pause(delayMs);
    response.setHeader('content-type', 'application/json').end(
      JSON.stringify({
        id: 'c',
        object: 'chat.completion',
        created: 1,
        model: 'm',
        choices: [
          {
            index: 0,
            message: { role: 'assistant', content: 'word '.repeat(output) },
            finish_reason: output < wish ? 'length' : 'stop',
          },
        ],
        usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
      }),
    );
  });
  // Longer than clients keep a connection, so that they close first and no call meets a closed one.
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
};
