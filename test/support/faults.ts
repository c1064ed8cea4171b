/** What a store can be told to refuse or asked to count, so that tests name no table. */
export const faults = {
  'audit entries': 'audit_entries',
  'audit heads': 'audit_heads',
  approvals: 'approvals',
  'standing rules': 'approval_rules',
  jobs: 'jobs',
  runs: 'runs',
  'run events': 'run_events',
  'run inputs': 'run_inputs',
  'run steps': 'run_steps',
  'model calls': 'run_model_calls',
  'kept answers': 'response_cache',
  'tool calls': 'tool_invocations',
  'quota use': 'quota_usage',
  'quota holds': 'quota_holds',
  sessions: 'sessions',
  'session messages': 'session_messages',
  'shared stretches': 'conversation_segments',
  'dropped conversations': 'dropped_conversations',
  'signs of life': 'run_heartbeats',
  'cancels of runs': 'run_cancels',
  'agent state': 'agent_states',
} as const;

export type Fault = keyof typeof faults;
