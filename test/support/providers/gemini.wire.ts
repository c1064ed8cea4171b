import { geminiObjection } from './rules/gemini.rules.ts';
import {
  countsAsTexts,
  dataFrame,
  doneFrame,
  type SimulatedAnswer,
  type SimulatedRequest,
  type SimulatedUsage,
  type VendorFault,
  type Wire,
} from './scenario.ts';

const errors: Record<VendorFault, { code: number; status: string; message: string; details?: object[] }> = {
  server: { code: 500, status: 'INTERNAL', message: 'An internal error has occurred' },
  overloaded: { code: 503, status: 'UNAVAILABLE', message: 'The model is overloaded. Please try again later.' },
  'rate-limit': {
    code: 429,
    status: 'RESOURCE_EXHAUSTED',
    message: 'You exceeded your current quota',
    details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '17s' }],
  },
  'bad-key': {
    code: 400,
    status: 'INVALID_ARGUMENT',
    message: 'API key not valid. Please pass a valid API key.',
    details: [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID' }],
  },
  'bad-request': { code: 400, status: 'INVALID_ARGUMENT', message: 'Invalid JSON payload received' },
  // The API has no code for this one.
  context: {
    code: 400,
    status: 'INVALID_ARGUMENT',
    message: 'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
  },
  filter: { code: 400, status: 'PROHIBITED_CONTENT', message: 'The prompt was blocked' },
};

const finishReasons = { stop: 'STOP', length: 'MAX_TOKENS', filter: 'SAFETY', pause: 'STOP' } as const;

/** Thoughts stand beside the candidates here, not in them. */
const usageObject = (usage: SimulatedUsage) => ({
  promptTokenCount: usage.input,
  candidatesTokenCount: usage.output - (usage.reasoning ?? 0),
  totalTokenCount: usage.input + usage.output,
  ...(usage.cached !== undefined && { cachedContentTokenCount: usage.cached }),
  ...(usage.reasoning !== undefined && { thoughtsTokenCount: usage.reasoning }),
  promptTokensDetails: [{ modality: 'TEXT', tokenCount: usage.input }],
});

/** The arguments of a call are never split; several calls come in several chunks. */
const parts = (answer: SimulatedAnswer): object[] => {
  return [
    ...(answer.reasoning ?? []).map((text) => ({ text, thought: true })),
    ...(answer.text ?? []).map((text) => ({ text })),
    ...(answer.toolCalls ?? []).map((call, index) => ({
      functionCall: {
        id: call.id,
        name: call.name,
        args: answer.oddities?.argumentsInOtherType === true ? call.arguments : JSON.parse(call.arguments),
      },
      // Only the first of parallel calls is signed.
      ...(index === 0 && { thoughtSignature: 'CiQB-thought-signature' }),
    })),
  ];
};

const grounding = ({ search }: SimulatedAnswer): object => {
  if (search === undefined) return {};
  return {
    groundingMetadata: {
      webSearchQueries: [search.query],
      searchEntryPoint: { renderedContent: '<div class="container"></div>' },
      groundingChunks: (search.pages ?? []).map(({ url, title }) => ({ web: { uri: url, title } })),
      groundingSupports: [],
    },
  };
};

const chunk = (answer: SimulatedAnswer, request: SimulatedRequest, content: object[], last: boolean) => {
  const reason = answer.reason === undefined ? finishReasons[answer.finish ?? 'stop'] : answer.reason;
  const finish = last && reason !== null ? { finishReason: reason } : {};
  const counts = answer.usage && usageObject(answer.usage);
  return {
    candidates: [
      { content: { parts: content, role: 'model' }, index: 0, ...finish, ...(last ? grounding(answer) : {}) },
    ],
    ...(counts && { usageMetadata: answer.oddities?.countsAsTexts === true ? countsAsTexts(counts) : counts }),
    modelVersion: request.model,
    responseId: 'mAitaLmkHPPlz7IPvtfUqQ4',
  };
};

/** Gemini's generateContent and streamGenerateContent. */
export const geminiWire: Wire = {
  frames(answer, request) {
    const all = parts(answer);
    const chunks = all.map((part) => chunk(answer, request, [part], false));
    // The last chunk of the real API has an empty text and the finish reason.
    const frames = [...chunks, chunk(answer, request, [{ text: '' }], true)].map(dataFrame);
    return answer.oddities?.saysDone === true ? [...frames, doneFrame] : frames;
  },
  document: (answer, request) => chunk(answer, request, parts(answer), true),
  error: (fault) => ({ error: errors[fault] }),
  errorFrame: (fault) => dataFrame({ error: errors[fault] }),
  objection: geminiObjection,
};
