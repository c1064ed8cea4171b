const upTo = (last: number): number[] => Array.from({ length: last }, (_, index) => index + 1);
const between = (first: number, last: number): number[] => upTo(last).filter((number) => number >= first);

/** The numbered rules that this version promises, by area. */
export const areas: Readonly<Record<string, { readonly title: string; readonly rules: readonly number[] }>> = {
  AGENT: { title: 'Agents', rules: upTo(54) },
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
  SEC: { title: 'Security', rules: [...upTo(34), ...between(46, 49), ...between(54, 57)] },
  KEY: { title: 'API keys', rules: upTo(11) },
  META: { title: 'Meta', rules: upTo(4) },
  AUDIT: { title: 'Audit', rules: upTo(30) },
  GUARD: { title: 'Content guards', rules: upTo(34) },
  // Schedules come with a later version; queued runs need the rest.
  JOB: { title: 'Jobs of queued runs', rules: [...between(20, 39), ...between(43, 46)] },
};

/** Rules that no test of this version can prove, each with its reason. */
export const elsewhere: Readonly<Record<string, string>> = {
  'AGENT-19': 'MCP servers come with a later version',
  'AGENT-49': 'MCP servers come with a later version',
  'RUN-3': 'quotas come with a later version',
  'RUN-47': 'judges come with a later version',
  'MODEL-16': 'proved with the breaker itself: there is no credential of a tenant yet',
  'MODEL-31': 'what a provider is asked is proved with simulated providers',
  'MODEL-36': 'a matter of time, proved with the part itself',
  'JOB-25': 'jobs with items come with a later version',
  'JOB-32': 'jobs with items come with a later version; RUN-17 and RUN-78 tell what a queued run repeats',
  'JOB-37': 'jobs with items come with a later version',
  'SESS-22': 'the endpoints that chain answers come with a later version',
  'APPR-7': 'the surfaces that it names come with later versions',
  'AUDIT-11': 'test/features/approvals: a continuation keeps who decided',
  'AUDIT-22': 'modules have no way to write entries in this version',
  'SEC-57': 'a promise about what is not there: no operation and no table holds a user',
  'RULE-12': 'needs a store that refuses: the tests of approvals break the audit trail and the rules with triggers',
  'GUARD-1': 'a rule about the start of a host; test/features/guards proves it',
  'GUARD-2': 'a rule about the start of a host; test/features/guards proves it',
  'GUARD-3': 'nothing of it shows over HTTP; test/features/guards proves it',
  'GUARD-4': 'a rule about the start of a host; test/features/guards proves it',
  'GUARD-8': 'needs a guard of a module; test/features/guards proves it',
  'GUARD-10': 'needs a guard of a module; test/features/guards proves it',
  'GUARD-11': 'the scripted model only repeats what its caller was told; test/features/guards proves it',
  'GUARD-12': 'needs a guard of a module; test/features/guards proves it',
  'GUARD-13': 'needs guards of a module; test/features/guards proves it',
  'GUARD-15': 'needs a guard that fails; test/features/guards proves it',
  'GUARD-16': 'quotas come with a later version',
  'GUARD-24': 'two classes, which RUN-73 tells apart',
  'GUARD-28': 'the scripted model does not reason; test/features/guards proves it',
  'GUARD-29': 'needs a model that writes JSON; test/features/guards proves it',
  'GUARD-34': 'test/features/guards counts how often a text is read',
};
