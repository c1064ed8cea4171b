import type { RunRow } from '../../db/tables.ts';
import { type ContentGuard, checkedJson, type GuardVerdict, namesIn } from '../../engine/control/index.ts';
import type { ToolRegistry } from '../../engine/tools/index.ts';
import { patternGuard } from '../guards/index.ts';
import { cappedList, groups } from './capped-list.ts';
import type { Gaps } from './gaps.ts';
import type { HistoryStore } from './history.store.ts';
import { createBreather, type HistoryScope, type PolicyOutcome, walkEvents, walkHistory } from './history-walk.ts';
import type { GuardDocument, GuardFindings } from './policy-tests.schema.ts';
import { callTexts, createEventTexts, inputTexts, jsonIn, type RecordedText } from './recorded-texts.ts';

export interface GuardTestDeps {
  readonly store: HistoryStore;
  readonly tools: Pick<ToolRegistry, 'get'>;
}

type Finding = GuardFindings['findings'][number];
type Mutable<T> = { -readonly [K in keyof T]: T[K] };

const runsPerRead = 10;

const noNames: ReadonlySet<string> = new Set();

const rulesOf = (verdict: GuardVerdict): readonly { action: 'Block' | 'Mask'; rule: string }[] => {
  if (verdict.decision === 'Block') return [{ action: 'Block', rule: verdict.rule }];
  return verdict.decision === 'Mask' ? verdict.rules.map((rule) => ({ action: 'Mask', rule })) : [];
};

/** Asks the guard about recorded texts. The report names rule and place, never the text itself. */
export const testGuard = async (
  { store, tools }: GuardTestDeps,
  scope: HistoryScope,
  document: GuardDocument,
  gaps: Gaps,
): Promise<PolicyOutcome<GuardFindings>> => {
  const guard: ContentGuard = patternGuard({
    deniedTerms: document.DeniedTerms ?? [],
    maskedPii: document.MaskedPii ?? [],
    maskReplacement: document.MaskReplacement ?? '',
  });
  const findings = cappedList<Finding>(scope.take);
  const byRule = groups((key) => ({ key, runs: 0, texts: 0 }));
  const counts = { runs: 0, texts: 0, blocked: 0, masked: 0 };
  const breathe = createBreather();

  const declaredOf = (toolName: string | null): ReadonlySet<string> => {
    const schema = toolName === null ? undefined : tools.get(toolName)?.descriptor.jsonSchema;
    return typeof schema === 'object' && schema !== null ? namesIn(schema) : noNames;
  };

  /** Every verdict on a text; arguments are looked at string by string. */
  const inspect = async (row: RunRow, { source, toolName, toolSource, text, isArguments }: RecordedText) => {
    const verdicts = new Map<string, { action: 'Block' | 'Mask'; rule: string }>();
    const ask = async (part: string): Promise<string> => {
      counts.texts += 1;
      const place = { source, toolName, toolSource, mediaType: null, sessionId: row.session_id, userId: row.user_id };
      const run = { tenantId: row.tenant_id, agentName: row.agent_name, runId: row.id };
      const verdict = await guard.inspect({ text: part, ...place, ...run }, scope.signal);
      for (const one of rulesOf(verdict)) verdicts.set(`${one.action}\n${one.rule}`, one);
      await breathe();
      return part;
    };
    // Cut, or never JSON: inspected as plain text.
    const value = isArguments ? jsonIn(text) : undefined;
    const walked = value === undefined ? null : await checkedJson(value, declaredOf(toolName), ask);
    if (walked === null) await ask(text);
    return verdicts.values();
  };

  const look = async (row: RunRow, texts: readonly RecordedText[], places: Map<string, Mutable<Finding>>) => {
    for (const text of texts)
      for (const { action, rule } of await inspect(row, text)) {
        const { source, toolName } = text;
        const key = [action, rule, source, toolName].join('\n');
        const finding = places.get(key);
        if (finding !== undefined) finding.texts += 1;
        else places.set(key, { runId: row.id, agentName: row.agent_name, action, rule, source, toolName, texts: 1 });
      }
  };

  const lookAtRun = async (row: RunRow, texts: readonly RecordedText[]): Promise<void> => {
    const places = new Map<string, Mutable<Finding>>();
    await look(row, texts, places);
    const log = createEventTexts(row.id, gaps);
    for await (const pack of walkEvents(store, row)) await look(row, log.read(pack), places);
    await look(row, log.end(row), places);
    counts.runs += 1;
    if (places.size === 0) return;
    const all = [...places.values()];
    counts[all.some(({ action }) => action === 'Block') ? 'blocked' : 'masked'] += 1;
    for (const finding of all) findings.add(finding);
    for (const name of new Set(all.map(({ action, rule }) => `${action}\n${rule}`))) byRule.of(name).runs += 1;
    for (const { action, rule, texts } of all) byRule.of(`${action}\n${rule}`).texts += texts;
  };

  for await (const rows of walkHistory(store, scope)) {
    // A few at a time: an input may have megabytes.
    for (let at = 0; at < rows.length; at += runsPerRead) {
      const some = rows.slice(at, at + runsPerRead);
      const ids = some.map(({ id }) => id);
      const [inputs, calls] = [await store.inputs(scope.tenantId, ids), await store.toolCalls(scope.tenantId, ids)];
      for (const row of some) {
        scope.signal.throwIfAborted();
        await lookAtRun(row, [
          ...inputTexts(row, inputs.get(row.id), gaps),
          ...callTexts(row.id, calls.get(row.id) ?? [], gaps),
        ]);
      }
    }
  }
  return {
    runsExamined: counts.runs,
    matches: counts.blocked + counts.masked,
    findings: {
      textsInspected: counts.texts,
      runsBlocked: counts.blocked,
      runsMasked: counts.masked,
      byRule: byRule.all
        .map(({ key, runs, texts }) => {
          const [action, rule = ''] = key.split('\n');
          return {
            rule: rule === '' ? key : rule,
            action: action === 'Block' ? 'Block' : 'Mask',
            runs,
            texts,
          } as const;
        })
        .sort((a, b) => b.runs - a.runs),
      findings: [...findings.items],
      findingsOmitted: findings.omitted,
    },
  };
};
