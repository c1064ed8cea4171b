import type { ModelTool } from '../../../providers/models/model-provider.ts';
import type { CompiledAgent } from '../../compiled-agent.ts';
import type { RegisteredTool } from '../../tools/index.ts';
import type { ContentGuards, GuardFinding } from './guard-port.ts';
import { checkedJson } from './json-texts.ts';
import { blockRun, type GuardedRun, guardsOf, inspectText, type TextPlace, tellMasks } from './run-guard.ts';

type OfferingRun<P> = GuardedRun & { readonly plan: P };

const noNames: ReadonlySet<string> = new Set();

const remoteIn = ({ tools }: Pick<CompiledAgent, 'tools'>, name: string): RegisteredTool | null => {
  const compiled = tools.get(name);
  return compiled?.kind === 'tool' && compiled.tool.descriptor.kind === 'Mcp' ? compiled.tool : null;
};

/** Masked part by part, so that it is still a tool; a mask that no part accounts for leaves the whole as one text. */
const masked = async (tool: ModelTool, whole: string, check: (text: string) => Promise<string>): Promise<ModelTool> => {
  const { description, inputSchema } = tool;
  const parts = await checkedJson([description ?? '', inputSchema] as never, noNames, check);
  const value = parts?.value as readonly [string, ModelTool['inputSchema']] | undefined;
  if (value === undefined || (value[0] === description && value[1] === inputSchema))
    return { ...tool, description: whole, inputSchema: { type: 'object' } };
  return { ...tool, description: value[0], inputSchema: value[1] };
};

/**
 * The plan with what remote servers say of their tools as the guards leave it. It is what a model reads first, so it is
 * inspected in each run, as a whole for each tool. Throws RunFailure of class ContentBlocked.
 */
export const guardedOffer = async <P extends GuardedRun['plan'] & { readonly agent: CompiledAgent }>(
  run: OfferingRun<P>,
  allGuards: ContentGuards,
): Promise<P> => {
  const { plan } = run;
  const guards = guardsOf(allGuards, 'RemoteTool');
  if (guards === null) return plan;
  let isChanged = false;
  const offered = await Promise.all(
    plan.agent.modelTools.map(async (tool) => {
      const remote = remoteIn(plan.agent, tool.name);
      if (remote === null) return tool;
      const place: TextPlace = { source: 'RemoteTool', toolName: tool.name, toolSource: remote.descriptor.source };
      const findings: GuardFinding[] = [];
      const inspect = async (text: string): Promise<string> => {
        if (text === '') return text;
        const { text: left, masks, block } = await inspectText(run, guards, text, place, run.signal);
        findings.push(...masks);
        if (block !== null) throw await blockRun(run, guards, { source: 'RemoteTool', finding: block });
        return left;
      };
      const told = `${tool.description ?? ''}\n${JSON.stringify(tool.inputSchema)}`;
      const left = await inspect(told);
      if (left === told) return tool;
      isChanged = true;
      const kept = await masked(tool, left, inspect);
      const once = new Map(findings.map((finding) => [`${finding.guardName}\n${finding.ruleName}`, finding]));
      tellMasks(run, 'RemoteTool', [...once.values()]);
      return kept;
    }),
  );
  return isChanged ? { ...plan, agent: { ...plan.agent, modelTools: offered } } : plan;
};
