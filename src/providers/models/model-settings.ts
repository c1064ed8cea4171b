import type { Config } from '../../core/config/schema.ts';

type Sections = Config['Service']['Providers'];
type Section<K extends keyof Sections> = NonNullable<Sections[K]>;
type Entry = Section<'OpenAI'>['Models'][number];

// A caller that is no configuration file names what it needs; what is absent counts as null.
type Loose<T> = { readonly [K in keyof T]?: T[K] | null | undefined };

/** One entry of a `Models` list. Prices are decimals per million tokens. */
export type ModelEntrySettings = Loose<Entry> & Pick<Entry, 'Name'>;

type Connection<S> = Loose<Omit<S, 'Models'>> & {
  readonly Models?: readonly ModelEntrySettings[] | null | undefined;
};

type Vendor = Exclude<keyof Sections, 'Compatible' | 'Scripted'>;

/** The section of a vendor. */
export type VendorSettings<K extends Vendor> = Connection<Section<K>>;
export type OpenAISettings = VendorSettings<'OpenAI'>;
export type CompatibleSettings = Connection<Section<'Compatible'>[string]>;
export type ScriptedSettings = Loose<Section<'Scripted'>[string]>;

/** What the sections of all connections have. */
export type ConnectionSettings = Pick<OpenAISettings, 'ApiKey' | 'Endpoint' | 'Timeout' | 'DisplayName' | 'Models'>;

/** The `Providers` section of the configuration; a section that exists registers its provider. */
export type ModelProviderSettings = Loose<
  { readonly [K in Vendor]: VendorSettings<K> } & {
    readonly Compatible: Loose<Readonly<Record<string, CompatibleSettings>>>;
    readonly Scripted: Loose<Readonly<Record<string, ScriptedSettings>>>;
  }
>;
