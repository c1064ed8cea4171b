import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { ScriptCall } from './skill-tools.ts';

type ScriptOutcome = 'completed' | 'timed_out' | 'canceled' | 'denied';

/** Counts and traces scripts; `waiting` gives how many calls wait for their turn. */
export const createScriptWatch = ({ metrics }: Telemetry, waiting: () => number) => {
  const runs = metrics.counter('acp.skill_script.runs', 'Calls of scripts that ended.', '{run}', [
    'acp.script.outcome',
  ]);
  const duration = metrics.histogram('acp.skill_script.duration', 'Time of the process of a script.', 's', []);
  metrics.gauge('acp.skill_script.waiting', 'Calls of scripts that wait for their turn.', '{call}', [], () => [
    { value: waiting(), values: [] },
  ]);
  return {
    /** Refused before anybody was asked for approval. */
    denied: () => runs.add(1, ['denied']),
    /** One call of a script, from its gates to its end. */
    began({ skill, scriptName, call }: ScriptCall) {
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
        /** It has its place; how long it waited for that. */
        admitted(): void {
          startedAt = performance.now();
          span?.set({ 'acp.script.wait_ms': Math.round(startedAt - beganAt) });
        },
        /** The first end counts. A process that exited has a code, whatever it is. */
        ended(outcome: ScriptOutcome, exitCode?: number): void {
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

export type ScriptWatch = ReturnType<typeof createScriptWatch>;
