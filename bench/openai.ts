import { type GatewayTurns, measureGateway } from './gateway.ts';
import { applyLoad } from './load.ts';
import { type Program, type Server, startAcp } from './servers.ts';
import { median, quantile } from './statistics.ts';
import { measureTurns, type Side, type Turns, type TurnsOptions } from './turns.ts';
import { acpCall, acpFolder, chatCall, createAgents } from './workspace.ts';

export interface OpenAiDoor {
  /** SSE runs, the native endpoint first. */
  readonly turns: readonly Turns[];
  /** Of a streamed chat over a run through the native endpoint, 1 at once: median over the rounds of the difference of both p50. */
  readonly addedFirstTokenMs: number;
  /** Chats with exposed models, in turns with a gateway that stores nothing; null: it could not be installed. */
  readonly gateway: readonly GatewayTurns[] | null;
}

/** What the API for clients of OpenAI costs beyond the native endpoint of the same service. */
export const measureOpenAi = async (
  folder: string,
  program: Program,
  simulator: Server,
  options: TurnsOptions,
  note: (text: string) => void,
): Promise<OpenAiDoor> => {
  const server = await startAcp(program, acpFolder(folder, 'openai', simulator).cwd);
  await createAgents(server);
  const native: Side = { name: 'the native endpoint', server, call: acpCall(server, 'sse', false) };
  const chat: Side = { name: '/v1/chat/completions', server, call: chatCall(server) };
  const turns = await measureTurns([native, chat], options);
  const firstToken = async ({ call }: Side): Promise<number> =>
    quantile((await applyLoad(call, { concurrency: 1, seconds: options.seconds })).firstTokens, 0.5);
  const added: number[] = [];
  for (let round = 0; round < options.rounds; round += 1) {
    const nativeFirst = round % 2 === 0;
    const first = await firstToken(nativeFirst ? native : chat);
    const second = await firstToken(nativeFirst ? chat : native);
    added.push(nativeFirst ? second - first : first - second);
  }
  await server.stop();
  note('a gateway of models');
  const gateway = await measureGateway(folder, program, simulator, options, note);
  return { turns, addedFirstTokenMs: median(added), gateway };
};
