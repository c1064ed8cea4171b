import { invalidField } from '../../contract/errors.ts';
import type { CallContext, Handlers } from '../../core/context.ts';
import type { RunOutcome } from '../../engine/active-run.ts';
import type { CompiledAgent } from '../../engine/compiled-agent.ts';
import { newMessage } from '../../engine/context/index.ts';
import type { VectorRequest } from '../../providers/models/model-provider.ts';
import { isModelName } from '../agents/index.ts';
import type { Launch, RunAnswers } from '../runs/index.ts';
import type { EmbeddingList, EmbeddingRequest } from './embeddings.schema.ts';
import type { embeddingOperations } from './openai.operations.ts';
import type { OpenAiTelemetry } from './openai-telemetry.ts';
import { agentNamed, refused } from './request.rules.ts';

export interface EmbeddingServiceDeps {
  readonly launch: Pick<Launch, 'enter'>;
  readonly answers: RunAnswers;
  readonly telemetry: OpenAiTelemetry;
  readonly agentExists: (tenantId: string, name: string) => Promise<boolean>;
  /** Guards read what is asked; what nobody can read is refused then. */
  readonly inspectsInput: boolean;
  readonly now: () => number;
  readonly newId: () => string;
}

/** As many as that API takes in one request. */
const maxInputs = 2048;
const maxDimensions = 65_536;

const maxTokens = 65_536;

interface Inputs {
  /** Of tokens their JSON: as such they are the message of the run. */
  readonly texts: readonly string[];
  readonly areTokens: boolean;
}

const textIn = (given: unknown, path: string): string => {
  if (typeof given !== 'string') throw invalidField(path, 'must be a text, or a list of texts');
  if (given === '') throw invalidField(path, 'must not be empty');
  return given;
};

const isToken = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;

const tokensIn = (given: unknown, path: string): string => {
  if (!Array.isArray(given) || !given.every(isToken)) throw invalidField(path, 'must be a list of tokens, as it began');
  if (given.length === 0) throw invalidField(path, 'must not be empty');
  if (given.length > maxTokens) throw invalidField(path, `has more than ${maxTokens} tokens`);
  return JSON.stringify(given);
};

const inputsOf = (input: unknown, inspectsInput: boolean): Inputs => {
  if (!Array.isArray(input)) return { texts: [textIn(input, 'input')], areTokens: false };
  if (input.length === 0) throw invalidField('input', 'must not be empty');
  const [first] = input;
  const areTokens = typeof first === 'number' || Array.isArray(first);
  if (areTokens && inspectsInput)
    throw refused('input', 'must be text: content guards cannot read what tokens stand for');
  if (typeof first === 'number') return { texts: [tokensIn(input, 'input')], areTokens };
  if (input.length > maxInputs) throw invalidField('input', `has more than ${maxInputs} entries`);
  const read = areTokens ? tokensIn : textIn;
  return { texts: input.map((given: unknown, index) => read(given, `input[${index}]`)), areTokens };
};

const dimensionsOf = ({ dimensions }: EmbeddingRequest): number | null => {
  if (dimensions === undefined || dimensions === null) return null;
  if (dimensions < 1 || dimensions > maxDimensions) throw invalidField('dimensions', `must be 1 to ${maxDimensions}`);
  return dimensions;
};

const isEncoded = ({ encoding_format: format }: EmbeddingRequest): boolean => {
  if (format === undefined || format === null || format === 'float') return false;
  if (format === 'base64') return true;
  throw invalidField('encoding_format', 'must be float or base64');
};

/** The model for a run that asks for vectors: no other model can stand in for it, since theirs mean something else. */
const vectorAgent = (agent: CompiledAgent, vectors: VectorRequest): CompiledAgent => {
  const { catalog, provider } = agent.model;
  if (!isModelName(agent.name) || catalog?.supportsEmbeddings !== true)
    throw refused('model', 'must be a model that is listed with SupportsEmbeddings');
  if (provider.makesVectors !== true)
    throw refused('model', `is of the provider "${provider.name}", whose embeddings the service cannot ask for`);
  return { ...agent, model: { ...agent.model, fallbacks: [], responseCacheMs: null, vectors } };
};

const encoded = (vector: readonly number[]): string => Buffer.from(Float32Array.from(vector).buffer).toString('base64');

const usageOf = ({ usage }: RunOutcome): EmbeddingList['usage'] =>
  usage === null ? null : { prompt_tokens: usage.inputTokens, total_tokens: usage.totalTokens ?? usage.inputTokens };

/** One run for each request, whose message are the texts and which answers nothing: the vectors are kept nowhere. */
export const embeddingService = (deps: EmbeddingServiceDeps): Handlers<typeof embeddingOperations> => {
  const messageFor = (runId: string, inputs: readonly string[]) => {
    const [only] = inputs;
    if (inputs.length === 1 && only !== undefined) return { message: only, given: null };
    const contents = inputs.map((text) => ({ type: 'Text', text }) as const);
    const history = [newMessage(runId, deps.newId(), 'User', deps.now(), contents)];
    return { message: null, given: { history, instructions: null } };
  };

  return {
    async create(context: CallContext, { body }) {
      const { texts, areTokens } = inputsOf(body.input, deps.inspectsInput);
      const dimensions = dimensionsOf(body);
      const inBase64 = isEncoded(body);
      const agentName = await agentNamed(body, (name) => deps.agentExists(context.tenantId, name));
      let vectors: readonly (readonly number[])[] = [];
      const entrance = await deps.launch.enter({
        kind: 'request',
        context,
        agentName,
        body: {},
        isStreaming: false,
        target: { sessionId: null },
        work: null,
        outside: {
          adjusted: (agent) =>
            vectorAgent(agent, {
              ...{ dimensions, areTokens },
              take(made) {
                vectors = made;
              },
            }),
          async parts(runId) {
            const { message, given } = messageFor(runId, texts);
            return { body: { message }, given, opening: [] };
          },
        },
      });
      const { run, outcome } = await deps.answers.toEnd(context, entrance, undefined, (begun) =>
        deps.telemetry.began(context, 'embeddings', begun, begun.id),
      );
      const list: EmbeddingList = {
        object: 'list',
        data: vectors.map((vector, index) => ({
          object: 'embedding',
          index,
          embedding: inBase64 ? encoded(vector) : [...vector],
        })),
        model: agentName,
        usage: usageOf(outcome),
      };
      return { status: 200, body: list, headers: { 'X-Run-Id': run.id } };
    },
  };
};
