const upTo = (last: number): number[] => Array.from({ length: last }, (_, index) => index + 1);
const between = (first: number, last: number): number[] => upTo(last).filter((number) => number >= first);

/** The numbered rules that this version promises, by area. */
export const areas: Readonly<Record<string, { readonly title: string; readonly rules: readonly number[] }>> = {
  AGENT: { title: 'Agents', rules: upTo(54) },
  OBS: { title: 'Observability', rules: upTo(34) },
  MODEL: { title: 'Model health and protection', rules: [4, ...between(16, 21), ...between(31, 36)] },
  RUN: { title: 'Runs', rules: upTo(80) },
  TOOL: { title: 'Tools', rules: upTo(39) },
  SKILL: { title: 'Skills', rules: upTo(28) },
  GRANT: { title: 'Script grants', rules: upTo(11) },
  SCRIPT: { title: 'Scripts', rules: upTo(21) },
  SESS: { title: 'Sessions', rules: upTo(28) },
  ATT: { title: 'Attachments', rules: upTo(19) },
  APPR: { title: 'Approvals', rules: upTo(40) },
  RULE: { title: 'Standing rules', rules: upTo(12) },
  SEC: { title: 'Security', rules: [...upTo(34), ...between(46, 57)] },
  KEY: { title: 'API keys', rules: upTo(11) },
  META: { title: 'Meta', rules: upTo(4) },
  AUDIT: { title: 'Audit', rules: upTo(30) },
  GUARD: { title: 'Content guards', rules: upTo(34) },
  QUOTA: { title: 'Quotas', rules: upTo(30) },
  WEBHOOK: { title: 'Webhooks', rules: upTo(36) },
  RATE: { title: 'Rate limit', rules: upTo(8) },
  SUBJ: { title: 'Data subjects', rules: upTo(11) },
  RET: { title: 'Retention', rules: upTo(28) },
  // Suites and online evaluation come with a later version.
  EVAL: { title: 'Judges', rules: [...between(33, 37), 43] },
  TRIGGER: { title: 'Triggers', rules: upTo(27) },
  OAI: { title: 'Clients of the OpenAI API', rules: upTo(45) },
  JOB: { title: 'Jobs and schedules', rules: upTo(48) },
  MCP: { title: 'The Model Context Protocol', rules: upTo(58) },
  A2A: { title: 'Agents for other agents', rules: upTo(36) },
};

/** Rules that no test of this version can prove, each with its reason. None of them counts as proved. */
export const elsewhere: Readonly<Record<string, string>> = {
  'OBS-19': 'the trace is one row in the commit that closes the run; a limit of spans keeps it small',
  'OBS-25': 'mounting as a library comes with a later version',
  'OBS-30': 'needs a part that cannot be read, which no caller can bring about',
  'OBS-34': 'mounting as a library comes with a later version',
  'RATE-8': 'memory of the process, which nothing shows over HTTP',
  'RET-10': 'the cutoff is the start of the sweep; what ages past it meanwhile cannot be seen from outside',
  'RET-27': 'no target of the contract names the history',
  'SEC-57': 'a promise about what is not there: no operation and no table holds a user',
  'GUARD-16': 'nothing of it shows: a guard calls no provider unless it starts a run, which is counted like any other',
};
