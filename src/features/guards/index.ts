import { AcpError } from '../../contract/errors.ts';
import type { Config } from '../../core/config/schema.ts';
import type { CallContext } from '../../core/context.ts';
import type { Logger } from '../../core/logger.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { BlockNote, ContentGuard, ContentGuards, GuardInput } from '../../engine/control/index.ts';
import type { AuditLog } from '../audit/index.ts';
import { createGuardMetrics } from './guard-metrics.ts';
import { createGuardRound } from './guard-round.ts';
import { patternGuard } from './pattern-guard.ts';

export interface GuardsDeps {
  readonly config: Config;
  /** Of modules, in their order. */
  readonly guards: readonly ContentGuard[];
  /** A module asks for the built-in guard. */
  readonly usesPattern: boolean;
  readonly audit: Pick<AuditLog, 'tell'>;
  readonly telemetry: Telemetry;
  readonly log: Logger;
}

export { patternGuard };

/** The run that a text outside of it belongs to. */
export type RelatedRun = Pick<GuardInput, 'agentName' | 'runId' | 'sessionId'>;

export interface GuardsFeature {
  /** Null: no guard is registered. */
  readonly guards: ContentGuards | null;
  /** A text of a request that starts no run, as it may be kept. Throws `content-blocked`. */
  inspectRequest(context: CallContext, text: string, related: RelatedRun): Promise<string>;
}

/** The guards of modules, and the pattern guard after them. */
const registered = ({ config, guards, usesPattern }: GuardsDeps): readonly ContentGuard[] => {
  const { Pattern } = config.Service.ContentGuard;
  if (Pattern === null && !usesPattern) return guards;
  return [
    ...guards,
    patternGuard({
      deniedTerms: Pattern?.DeniedTerms ?? [],
      maskedPii: Pattern?.MaskedPii ?? [],
      maskReplacement: Pattern?.MaskReplacement ?? '',
    }),
  ];
};

export const guardsFeature = (deps: GuardsDeps): GuardsFeature => {
  const { ContentGuard: settings } = deps.config.Service;
  const all = registered(deps);
  if (all.length === 0) return { guards: null, inspectRequest: async (_context, text) => text };
  const inspect = createGuardRound({
    guards: all,
    timeoutMs: settings.GuardTimeout,
    metrics: createGuardMetrics(deps.telemetry),
    log: deps.log,
  });
  const noteBlock = ({ tenantId, actor, entity, id, source, finding }: BlockNote): Promise<void> =>
    deps.audit.tell(
      { tenantId, principal: { actor }, audit: { action: 'content.blocked', entity, mode: 'noted' } },
      { id, before: null, after: { source, guardName: finding.guardName, ruleName: finding.ruleName } },
    );
  return {
    guards: {
      input: settings.InspectInput,
      output: settings.InspectOutput,
      buffersStreams: settings.BufferStreamingOutput,
      inspect,
      noteBlock,
    },
    async inspectRequest(context, text, related) {
      if (!settings.InspectInput || text === '') return text;
      const { tenantId, principal, requestId } = context;
      const source = 'UserMessage';
      const input = {
        text,
        source,
        tenantId,
        ...related,
        userId: principal.userId,
        toolName: null,
        toolSource: null,
        mediaType: null,
      };
      const { text: inspected, block } = await inspect({ ...input, source }, null, null);
      if (block === null) return inspected;
      const { actor } = principal;
      await noteBlock({ tenantId, actor, entity: 'request', id: requestId, source, finding: block });
      throw new AcpError('content-blocked', 'The content was blocked by a guard.', {
        details: { errorType: 'content_blocked', ...block },
      });
    },
  };
};
