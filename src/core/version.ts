import manifest from '../../package.json' with { type: 'json' };

/** The product's semantic version, as `acp --version`, `GET /api/meta` and the user agent tell it. */
export const version: string = manifest.version;
