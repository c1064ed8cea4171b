const hostForm = /^[A-Za-z0-9.-]+(?::\d{1,5})?$|^\[[0-9A-Fa-f:.]+\](?::\d{1,5})?$/;

/**
 * A path of this service as its caller reaches it, by what the request says; null where it names no host. It is told to this
 * caller only, who could mislead nobody else with it.
 */
export const requestUrl = (path: string, header: (name: string) => string | undefined): string | null => {
  const first = (name: string): string | undefined => header(name)?.split(',', 1)[0]?.trim();
  const host = first('x-forwarded-host') ?? first('host') ?? '';
  const scheme = first('x-forwarded-proto')?.toLowerCase() === 'https' ? 'https' : 'http';
  return hostForm.test(host) ? `${scheme}://${host}${path}` : null;
};
