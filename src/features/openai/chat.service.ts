import { invalidField } from '../../contract/errors.ts';
import type { CallContext, Handlers } from '../../core/context.ts';
import type { AskedSettings } from '../../engine/context/index.ts';
import { warningsOf } from '../../engine/lifecycle/index.ts';
import { isModelName } from '../agents/index.ts';
import { askedAgent, type Launch, type OnDisconnect, type RunAnswers, warningHeader } from '../runs/index.ts';
import type { ChatCompletionRequest } from './chat.schema.ts';
import { chatCompletion, chatHead } from './chat-answer.ts';
import { chatFrames } from './chat-frames.ts';
import { chatInput } from './chat-input.ts';
import type { GivenMessages } from './given-messages.ts';
import { modelSettings } from './model-request.ts';
import type { chatCompletionOperations } from './openai.operations.ts';
import type { OpenAiTelemetry } from './openai-telemetry.ts';
import {
  type Adjustment,
  agentNamed,
  askedSettings,
  checkedMetadata,
  formatOf,
  parametersIn,
  refuseKeyedStream,
  refuseUnsupported,
  tokenLimit,
} from './request.rules.ts';
import { inTermsOf, namesOf } from './request-names.ts';
import { heldForRateLimit, translated } from './run-frames.ts';

export interface ChatServiceDeps {
  readonly launch: Pick<Launch, 'enter'>;
  readonly answers: RunAnswers;
  readonly given: GivenMessages;
  readonly telemetry: OpenAiTelemetry;
  readonly agentExists: (tenantId: string, name: string) => Promise<boolean>;
}

const adjustmentOf = (body: ChatCompletionRequest): Adjustment => ({
  maxTokens: tokenLimit({ max_completion_tokens: body.max_completion_tokens, max_tokens: body.max_tokens }),
  format: formatOf(body.response_format, 'response_format'),
  tools: (body.tools ?? []).map(({ type, function: named }) => ({ type, name: named?.name ?? null })),
  toolChoice: body.tool_choice,
});

type Create = Handlers<typeof chatCompletionOperations>['create'];

const ofRun = namesOf('messages');

/** One run for each request; the conversation is the caller's. */
export const chatService = (deps: ChatServiceDeps): Handlers<typeof chatCompletionOperations> => {
  const { launch, answers, given, telemetry } = deps;

  const enter = async (context: CallContext, body: ChatCompletionRequest) => {
    refuseUnsupported(body);
    const metadata = checkedMetadata(body.metadata);
    const input = chatInput(body.messages);
    const adjustment = adjustmentOf(body);
    const isStreaming = body.stream === true;
    if (body.stream_options != null && !isStreaming) throw invalidField('stream_options', 'needs stream');
    const agentName = await agentNamed(body, (name) => deps.agentExists(context.tenantId, name));
    const parameters = parametersIn(metadata);
    let asked: AskedSettings | null = null;
    const entrance = await launch.enter({
      kind: 'request',
      context,
      agentName,
      body: {},
      isStreaming,
      target: { sessionId: null },
      work: null,
      outside: {
        adjusted(agent) {
          asked = askedSettings(agent, adjustment, isModelName(agent.name) ? modelSettings(agent, body, 'chat') : null);
          return askedAgent(agent, asked);
        },
        async parts(runId) {
          const { history, ...turn } = await given(context, input, null, runId);
          const isPlain = history.length === 0 && input.instructions === null;
          return {
            body: { ...turn, parameters },
            given: isPlain ? null : { history, instructions: input.instructions },
            asked,
            opening: [],
          };
        },
      },
    });
    return { entrance, isStreaming };
  };

  const create: Create = async (context, { body, query, headers }) => {
    refuseKeyedStream(headers['idempotency-key'], body.stream === true);
    if (body.stream === true) context.openStream?.();
    const { entrance, isStreaming } = await enter(context, body);
    const onDisconnect: OnDisconnect = query.onDisconnect;
    if (!isStreaming) {
      const answer = async () => {
        const { run, outcome } = await answers.toEnd(context, entrance, onDisconnect, (begun) =>
          telemetry.began(context, 'chat', begun, chatHead(begun).id),
        );
        const headers = { 'X-Run-Id': run.id, ...warningHeader(warningsOf(run)) };
        return { status: 200, body: chatCompletion(run, outcome), headers } as const;
      };
      return context.once === null ? await answer() : await context.once(entrance.ownerId, answer);
    }
    const { run, stream } = await answers.streamed(context, entrance, onDisconnect, heldForRateLimit);
    const head = chatHead(run);
    telemetry.streams(context, 'chat', run, head.id);
    const { responseFormat } = run.plan.agent.model;
    const frames = chatFrames(head, {
      includeUsage: body.stream_options?.include_usage === true,
      holdsText: responseFormat !== null && responseFormat.kind !== 'Text',
    });
    return { status: 200, stream: translated(stream, frames), headers: { 'X-Run-Id': run.id } };
  };

  return { create: (context, request) => inTermsOf(ofRun, create(context, request)) };
};
