/** What a store can be told to refuse, so that tests name no table. */
export const faults = {
  'audit entries': 'audit_entries',
  'audit heads': 'audit_heads',
  approvals: 'approvals',
  'standing rules': 'approval_rules',
  jobs: 'jobs',
  runs: 'runs',
  'run events': 'run_events',
  'tool calls': 'tool_invocations',
  'quota use': 'quota_usage',
} as const;

export type Fault = keyof typeof faults;
