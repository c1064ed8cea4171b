/** `If-None-Match` (RFC 9110, section 13.1.2): any of the tags, compared without their weakness, or `*`. */
export const hasTag = (header: string | null | undefined, tag: string): boolean =>
  (header ?? '').split(',').some((entry) => ['*', tag].includes(entry.trim().replace(/^W\//, '')));
