/** Labels as a row has them: null without any. */
export const labelsText = (labels: Readonly<Record<string, string>> = {}): string | null =>
  Object.keys(labels).length === 0 ? null : JSON.stringify(Object.fromEntries(Object.entries(labels).sort()));

export const labelsOf = ({ labels }: { readonly labels: string | null }): Record<string, string> =>
  labels === null ? {} : (JSON.parse(labels) as Record<string, string>);
