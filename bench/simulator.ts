import { type AddressInfo, createServer, type Socket } from 'node:net';
import process from 'node:process';

/**
 * A model provider that costs as little as possible: chat completions over raw sockets, answers encoded once.
 * `POST …/chat/completions` streams or answers at once, as the body asks. A body with tools whose last message is not
 * a tool's result gets one call of the tool `lookup`; everything else gets 20 words. Prints its URL. Its
 * arguments are how many milliseconds it thinks before each answer, and how many it takes from one packet to the next.
 */
const wordsPerAnswer = 20;
const model = 'gpt-4.1-mini-2025-04-14';
const words = Array.from({ length: wordsPerAnswer }, (_, index) => `word${index} `);
const usage = {
  prompt_tokens: 120,
  completion_tokens: 40,
  total_tokens: 160,
  prompt_tokens_details: { cached_tokens: 64, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 0 },
};
const toolCall = { id: 'call_0001', type: 'function', function: { name: 'lookup', arguments: '{"word":"river"}' } };

const httpChunk = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;

const streamHead =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n';

/** The packets of one answer: the headers with the first frame, the end of the body with the last one. */
const packets = (deltas: readonly object[], finish: string): readonly Buffer[] => {
  const frame = (members: object): string =>
    httpChunk(
      `data: ${JSON.stringify({
        id: 'chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG',
        object: 'chat.completion.chunk',
        created: 1741570283,
        model,
        service_tier: 'default',
        system_fingerprint: 'fp_fc9f1d7035',
        ...members,
      })}\n\n`,
    );
  const choice = (delta: object, reason: string | null): string =>
    frame({ choices: [{ index: 0, delta, logprobs: null, finish_reason: reason }], usage: null });
  const frames = [
    choice({ role: 'assistant', content: '', refusal: null }, null),
    ...deltas.map((delta) => choice(delta, null)),
    choice({}, finish),
    frame({ choices: [], usage }),
    `${httpChunk('data: [DONE]\n\n')}0\r\n\r\n`,
  ];
  return frames.map((text, index) => Buffer.from(index === 0 ? streamHead + text : text));
};

const document = (message: object, finish: string): readonly Buffer[] => {
  const body = JSON.stringify({
    id: 'chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT',
    object: 'chat.completion',
    created: 1741569952,
    model,
    choices: [
      { index: 0, message: { role: 'assistant', refusal: null, ...message }, logprobs: null, finish_reason: finish },
    ],
    usage,
    service_tier: 'default',
  });
  const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n`;
  return [Buffer.from(head + body)];
};

const answers = {
  text: {
    stream: packets(
      words.map((content) => ({ content })),
      'stop',
    ),
    json: document({ content: words.join('') }, 'stop'),
  },
  tool: {
    stream: packets(
      [
        { tool_calls: [{ index: 0, ...toolCall, function: { name: 'lookup', arguments: '' } }] },
        ...['{"word":', '"river"}'].map((piece) => ({ tool_calls: [{ index: 0, function: { arguments: piece } }] })),
      ],
      'tool_calls',
    ),
    json: document({ content: null, tool_calls: [toolCall] }, 'tool_calls'),
  },
};

interface Answering {
  readonly socket: Socket;
  readonly packets: readonly Buffer[];
  next: number;
}

const [thinksMs = 0, paceMs = 0] = process.argv.slice(2).map(Number);
const nextTurn = (): void => void (paceMs === 0 ? setImmediate(step) : setTimeout(step, paceMs));

// One packet for each open answer in each turn of the event loop: frames arrive one by one, as from a real model.
let open: Answering[] = [];
const step = (): void => {
  const current = open;
  open = [];
  for (const answering of current) {
    const packet = answering.packets[answering.next];
    if (packet === undefined || answering.socket.destroyed) continue;
    answering.socket.write(packet);
    answering.next += 1;
    if (answering.next < answering.packets.length) open.push(answering);
  }
  if (open.length > 0) nextTurn();
};

const begin = (socket: Socket, body: Buffer): void => {
  // A quotation mark within a message is escaped, so these are members of the request and no words of a user.
  const lastRole = body.lastIndexOf('"role":"');
  const wantsTool = body.includes('"tools":[') && body.indexOf('"role":"tool"', lastRole) !== lastRole;
  const kind = wantsTool ? answers.tool : answers.text;
  open.push({ socket, packets: body.includes('"stream":true') ? kind.stream : kind.json, next: 0 });
  if (open.length === 1) nextTurn();
};

const answer = (socket: Socket, body: Buffer): void => {
  if (thinksMs === 0) begin(socket, body);
  else setTimeout(begin, thinksMs, socket, body);
};

const contentLength = /\r\ncontent-length: *(\d+)/i;

const serve = (socket: Socket): void => {
  let pending: Buffer = Buffer.alloc(0);
  const takeRequest = (): boolean => {
    const headEnd = pending.indexOf('\r\n\r\n');
    if (headEnd < 0) return false;
    const length = contentLength.exec(pending.toString('latin1', 0, headEnd + 2))?.[1];
    if (length === undefined) throw new Error('The simulator understands only bodies with a content-length');
    const end = headEnd + 4 + Number(length);
    if (pending.length < end) return false;
    answer(socket, pending.subarray(headEnd + 4, end));
    pending = pending.subarray(end);
    return true;
  };
  socket.setNoDelay(true);
  socket.on('data', (data: Buffer) => {
    pending = pending.length === 0 ? data : Buffer.concat([pending, data]);
    while (pending.length > 0 && takeRequest());
  });
  // A caller that goes away in the middle of an answer ends that answer and nothing else.
  socket.on('error', () => socket.destroy());
};

const server = createServer(serve);
server.listen(0, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
process.once('SIGTERM', () => process.exit(0));
