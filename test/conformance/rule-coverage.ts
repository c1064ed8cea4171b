export interface Area {
  readonly title: string;
  readonly rules: readonly number[];
}

export interface RuleSources {
  readonly areas: Readonly<Record<string, Area>>;
  /** Reasons of rules that no test can prove. A reason is no proof: its rule counts among those without a test. */
  readonly reasons: Readonly<Record<string, string>>;
  /** Names of the tests of the suite that asks a server over HTTP. */
  readonly overHttp: readonly string[];
  /** Names of the tests of `npm test`. */
  readonly npmTest: readonly string[];
}

/** Rule ids, each in one of four lists. */
export interface Proofs {
  readonly both: readonly string[];
  readonly overHttpAlone: readonly string[];
  readonly npmTestAlone: readonly string[];
  readonly neither: readonly string[];
}

export interface RuleCoverage extends Proofs {
  readonly byArea: readonly (Proofs & { readonly title: string })[];
  /** Rules with neither a test nor a reason. */
  readonly unexplained: readonly string[];
  /** Reasons of rules that have a test after all, or that are no rules. */
  readonly stale: readonly string[];
}

/** What the names of tests say of the rules. */
export const ruleCoverage = ({ areas, reasons, overHttp, npmTest }: RuleSources): RuleCoverage => {
  const ruleId = new RegExp(`\\b(?:${Object.keys(areas).join('|')})-\\d+\\b`, 'g');
  const named = (names: readonly string[]) => new Set(names.flatMap((name) => name.match(ruleId) ?? []));
  const http = named(overHttp);
  const npm = named(npmTest);
  const proofs = (ids: readonly string[]): Proofs => ({
    both: ids.filter((id) => http.has(id) && npm.has(id)),
    overHttpAlone: ids.filter((id) => http.has(id) && !npm.has(id)),
    npmTestAlone: ids.filter((id) => !http.has(id) && npm.has(id)),
    neither: ids.filter((id) => !http.has(id) && !npm.has(id)),
  });
  const byArea = Object.entries(areas).map(([area, { title, rules }]) => ({
    title,
    ids: rules.map((number) => `${area}-${number}`),
  }));
  const all = byArea.flatMap(({ ids }) => ids);
  const total = proofs(all);
  return {
    ...total,
    byArea: byArea.map(({ title, ids }) => ({ title, ...proofs(ids) })),
    unexplained: total.neither.filter((id) => !Object.hasOwn(reasons, id)),
    stale: Object.keys(reasons).filter((id) => !total.neither.includes(id)),
  };
};

const plural = (count: number): string => `${count} ${count === 1 ? 'rule' : 'rules'}`;

/** The report as text: three numbers, each area, and the rules that are not in `npm test` or nowhere. */
export const coverageText = (
  { byArea, unexplained, stale, ...total }: RuleCoverage,
  reasons: RuleSources['reasons'],
): string => {
  const counts = ({ both, overHttpAlone, npmTestAlone, neither }: Proofs) => ({
    rules: both.length + overHttpAlone.length + npmTestAlone.length + neither.length,
    http: both.length + overHttpAlone.length,
    npm: both.length + npmTestAlone.length,
    neither: neither.length,
  });
  const cell = (count: number): string => String(count).padStart(5);
  const rows = byArea.map((area) => {
    const { rules, http, npm, neither } = counts(area);
    return `${area.title.padEnd(30)}${cell(rules)} rules${cell(http)} over HTTP${cell(npm)} npm test${cell(neither)} neither`;
  });
  const sum = counts(total);
  const alone = total.overHttpAlone;
  const without = total.neither.filter((id) => Object.hasOwn(reasons, id));
  return [
    ...rows,
    '',
    `Of ${plural(sum.rules)}:`,
    `${cell(sum.http)} are proved over HTTP by the conformance suite,`,
    `${cell(sum.npm)} are proved by tests of \`npm test\` (${total.both.length} of them by both),`,
    `${cell(sum.neither)} are proved by neither.`,
    ...(alone.length === 0 ? [] : ['', `Proved over HTTP alone, and not by \`npm test\`: ${alone.join(', ')}`]),
    ...(without.length === 0 ? [] : ['', 'Without a test:', ...without.map((id) => `  ${id}: ${reasons[id]}`)]),
    ...(unexplained.length === 0 ? [] : ['', `Rules without a test and without a reason: ${unexplained.join(', ')}`]),
    ...(stale.length === 0 ? [] : ['', `Listed as untested though they have a test: ${stale.join(', ')}`]),
  ].join('\n');
};
