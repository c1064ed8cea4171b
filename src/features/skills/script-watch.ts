import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { ScriptCall } from './skill-tools.ts';

export type ScriptOutcome = 'completed' | 'timed_out' | 'canceled' | 'denied';

/** One call of a script, from its gates to its end. */
export interface WatchedScript {
  /** It has its place; how long it waited for that. */
  admitted(): void;
  /** The first end counts. A process that exited has a code, whatever it is. */
  ended(outcome: ScriptOutcome, exitCode?: number): void;
}

export interface ScriptWatch {
  began(call: ScriptCall): WatchedScript;
  /** Refused before anybody was asked for approval. */
  denied(): void;
}

/** Counts and traces scripts; `waiting` gives how many calls wait for their turn. */
export const createScriptWatch = ({ metrics }: Telemetry, waiting: () => number): ScriptWatch => {
  const runs = metrics.counter('acp.skill_script.runs', 'Calls of scripts that ended.', '{run}', [
    'acp.script.outcome',
  ]);
  const duration = metrics.histogram('acp.skill_script.duration', 'Time of the process of a script.', 's', []);
  metrics.gauge('acp.skill_script.waiting', 'Calls of scripts that wait for their turn.', '{call}', [], () => [
    { value: waiting(), values: [] },
  ]);
  return {
    denied: () => runs.add(1, ['denied']),
    began({ skill, scriptName, call }) {
      const span =
        call.openSpan?.('acp.skill_script', {
          'acp.tenant.id': call.run.tenantId,
          'gen_ai.operation.name': 'execute_tool',
          'gen_ai.tool.name': 'run_skill_script',
          'acp.skill.name': skill.name,
          'acp.script.name': skill.scripts.find(({ name }) => name === scriptName)?.name,
        }) ?? null;
      const beganAt = performance.now();
      let startedAt: number | null = null;
      let isOver = false;
      return {
        admitted() {
          startedAt = performance.now();
          span?.set({ 'acp.script.wait_ms': Math.round(startedAt - beganAt) });
        },
        ended(outcome, exitCode) {
          if (isOver) return;
          isOver = true;
          runs.add(1, [outcome]);
          const ranMs = startedAt === null || outcome === 'denied' ? null : performance.now() - startedAt;
          if (ranMs !== null) duration.record(ranMs / 1000, []);
          span?.set({
            'acp.script.outcome': outcome,
            'acp.script.exit_code': exitCode,
            'acp.script.duration_ms': ranMs === null ? null : Math.round(ranMs),
          });
          span?.close(outcome === 'completed' ? null : outcome);
        },
      };
    },
  };
};
