/**
 * What keeps an answer from pages of other sites and from being taken for a page of this one. On every answer; only the
 * API page, which is a page, widens what it may load.
 */
export const protectiveHeaders = {
  'x-content-type-options': 'nosniff',
  // Not even as an image or a script of a page that never sees the bytes: a browser would have them in its process.
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  // For browsers that do not know `frame-ancestors`.
  'x-frame-options': 'DENY',
  // Paths hold ids of runs and sessions.
  'referrer-policy': 'no-referrer',
} as const;
