import type { Config } from '../../core/config/schema.ts';
import type { EngineSettings } from '../../engine/lifecycle/index.ts';

/** What the engine counts with, as it is configured. */
export const engineSettings = ({ Service }: Config): EngineSettings => {
  const { RunRecording: recording, AgentGraph: graph, Tools: tools, StructuredResponse: structured } = Service;
  return {
    recording: {
      enabled: recording.Enabled,
      recordMessageDeltas: recording.RecordMessageDeltas,
      recordReasoningDeltas: recording.RecordReasoningDeltas,
      recordToolPayloads: recording.RecordToolPayloads,
      recordRunInput: recording.RecordRunInput,
      maxPayloadLength: recording.MaxPayloadLength,
    },
    tree: {
      maxDepth: graph.MaxDepth,
      maxTotalTokens: graph.MaxTotalTokens,
      maxTotalRuns: graph.MaxTotalRuns,
      maxTotalCostMicros: graph.MaxTotalCost === null ? null : Math.round(graph.MaxTotalCost * 1_000_000),
      maxDurationMs: graph.MaxDuration,
    },
    maxIterations: tools.MaxIterations,
    maxConsecutiveToolErrors: tools.MaxConsecutiveErrors,
    steps: { continuation: Service.RunContinuation.Enabled, retries: Service.AsyncRun.MaxAttempts > 1 },
    childDeadlineMs: graph.ChildDeadline,
    waitTimeoutMs: graph.WaitTimeout,
    structuredResponse: {
      enabled: structured.Enabled,
      maxRepairAttempts: structured.MaxRepairAttempts,
    },
  };
};
