const words: Readonly<Record<string, string>> = {
  ALIAS_PROPS: 'An alias has an anchor or a tag of its own.',
  BAD_ALIAS: 'An alias does not name an anchor that comes before it.',
  BAD_COLLECTION_TYPE: 'A tag asks for another kind of value than the one that follows it.',
  BAD_DIRECTIVE: 'A line that begins with % is no directive of YAML 1.2.',
  BAD_DQ_ESCAPE: 'A text in double quotes has an escape that YAML does not know; write \\\\ for a backslash.',
  BAD_INDENT: 'A line is indented too little, or a bracket or brace before it is not closed.',
  BAD_PROP_ORDER: 'An anchor or a tag stands in the wrong place.',
  BAD_SCALAR_START: 'A value begins with a character that YAML keeps for itself; put the value in quotes.',
  BLOCK_AS_IMPLICIT_KEY:
    'A field stands within the value of another one: indent it as its siblings, or quote a value with a colon.',
  BLOCK_IN_FLOW: 'A list or mapping by lines stands within brackets or braces.',
  DUPLICATE_KEY: 'A field is given twice.',
  IMPOSSIBLE: 'The text cannot be read here.',
  KEY_OVER_1024_CHARS: 'The name of a field is longer than 1024 characters.',
  MISSING_CHAR: 'A quotation mark, comma, colon or space is missing.',
  MULTILINE_IMPLICIT_KEY:
    'A line is no field: its colon, or the space after that, is missing, or its indentation is not that of the others.',
  MULTIPLE_ANCHORS: 'A value has two anchors.',
  MULTIPLE_DOCS: 'There are several documents, separated by ---, where one is expected.',
  MULTIPLE_TAGS: 'A value has two tags.',
  NON_STRING_KEY: 'The name of a field has to be a text.',
  RESOURCE_EXHAUSTION: 'The values are nested too deeply.',
  TAB_AS_INDENT: 'A line is indented with a tab; use spaces.',
  TAG_RESOLVE_FAILED: 'A tag is not known; a text that begins with ! needs quotes.',
  UNEXPECTED_TOKEN: 'There is something where nothing, or something else, was expected.',
};

/** What is wrong with a YAML text, in our own words. The words of the library are about its grammar, and change with it. */
export const yamlFault = ({ code }: { readonly code: string }): string =>
  words[code] ?? 'The text cannot be read here.';
