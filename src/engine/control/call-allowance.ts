import type { ModelCall, ModelFinish } from '../../providers/models/model-provider.ts';
import type { CompiledTarget } from '../compiled-agent.ts';
import { type CostMicros, costOf, type PriceList } from '../pricing.ts';
import { RunFailure } from '../run-failure.ts';
import { type CallAllowances, quotaUse, type RunQuotas, type UnrecordedCount } from './run-quotas.ts';
import type { WaitClock } from './wait-clock.ts';

// No tokenizer makes more tokens of a text than it has bytes; this is for what providers add around it, such as the
// instructions that go with tools.
const tokensAround = 2000;
// Of a picture the size in bytes says little; no provider counts more than some fifty thousand for one.
const tokensOfAFile = 50_000;

// What these hold is looked at; any other file may hold text, as tight as a document is compressed.
const pictures = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);

/** More than any provider counts for what the call sends. */
const mostInput = ({ prompt, tools, responseFormat, settings }: ModelCall): number => {
  let files = 0;
  let pictureBytes = 0;
  for (const { content } of prompt)
    if (typeof content !== 'string')
      for (const part of content) {
        if (part.type !== 'file') continue;
        files += 1;
        const data = 'data' in part.data ? part.data.data : null;
        if (pictures.has(part.mediaType) && typeof data === 'string') pictureBytes += data.length;
      }
  const bytes = Buffer.byteLength(JSON.stringify([prompt, tools, responseFormat, settings])) - pictureBytes;
  return bytes + tokensAround + files * tokensOfAFile;
};

// Settings that go to the provider as they are, and by which a call could use more than is foreseen.
const widening = new Set([
  // What is not in the request.
  'cachedcontent',
  'contextmanagement',
  'plugins',
  'searchparameters',
  'websearchoptions',
  'prediction',
  // More, or longer, answers.
  'maxtokens',
  'maxcompletiontokens',
  'maxoutputtokens',
  'generationconfig',
  'n',
  'candidatecount',
  'bestof',
]);

const refuseWidening = ({ settings }: ModelCall): void => {
  const setting = Object.keys(settings ?? {}).find((name) => widening.has(name.replaceAll(/[_-]/g, '').toLowerCase()));
  if (setting !== undefined)
    throw new RunFailure(
      'QuotaExceeded',
      'quota_exceeded',
      `With the setting "${setting}" of the agent's model a call may use more than can be foreseen, which strict quotas do not allow; answers are bounded by "maxOutputTokens".`,
    );
};

/** A run whose model calls count against quotas, under the agent of its root. */
interface QuotaRun {
  readonly id: string;
  readonly root: {
    readonly id: string;
    readonly plan: {
      readonly tenantId: string;
      readonly agent: { readonly name: string };
      readonly unrecordedCount: UnrecordedCount | null;
    };
  };
  readonly usage: { readonly totalTokens: number | null };
  readonly cost: CostMicros | null;
  readonly waits: WaitClock;
  readonly signal: AbortSignal;
}

export interface QuotaPorts {
  /** Null: runs are not counted. */
  readonly quotas: RunQuotas | null;
  readonly prices: PriceList;
}

type CallWork = (sent: ModelCall, isCut: boolean) => Promise<ModelFinish | null>;

const callWithin = async (
  allowances: CallAllowances,
  run: QuotaRun,
  ports: QuotaPorts,
  target: CompiledTarget,
  call: ModelCall,
  work: CallWork,
): Promise<void> => {
  const { tenantId, agent, unrecordedCount } = run.root.plan;
  const root = { id: run.root.id, agentName: agent.name, day: unrecordedCount?.day ?? null };
  // What a provider finds on the web is input that nobody can foretell.
  const { webSearch, ...rest } = call;
  const asked: ModelCall = webSearch === undefined ? call : { ...rest, webSearch: 'withheld' };
  const prices = ports.prices.pricesOf(target.provider.name, target.model, target.catalog);
  const spent = quotaUse(run.usage.totalTokens, run.cost);
  run.waits.enter();
  const allowance = await (allowances.apply(tenantId, agent.name)
    ? allowances.allow({
        tenantId,
        runId: run.id,
        root,
        spent,
        inputTokens: mostInput(asked),
        outputTokens: call.maxOutputTokens ?? target.catalog?.maxOutputTokens ?? null,
        prices,
        signal: run.signal,
      })
    : allowances.free({ tenantId, runId: run.id, root, spent })
  ).finally(() => run.waits.leave());
  const { isFree, isCut, outputTokens } = allowance;
  let finish: ModelFinish | null = null;
  try {
    if (!isFree) refuseWidening(call);
    finish = await (isFree
      ? work(call, false)
      : work({ ...asked, maxOutputTokens: outputTokens, isCapped: true }, isCut));
  } finally {
    allowance.settle(quotaUse(finish?.usage.totalTokens, finish === null ? null : costOf(finish.usage, prices)));
  }
};

/**
 * Makes a call within what strict quotas leave of it. `work` gets the call as it is sent, with `isCut` when its answer may be
 * cut short, and gives what the provider said at its end. Throws RunFailure `quota_exceeded` when nothing is left, before
 * the provider is called.
 */
export const callWithinQuotas = (
  run: QuotaRun,
  ports: QuotaPorts,
  target: CompiledTarget,
  call: ModelCall,
  work: CallWork,
): Promise<unknown> => {
  const allowances = ports.quotas?.calls ?? null;
  return allowances === null ? work(call, false) : callWithin(allowances, run, ports, target, call, work);
};
