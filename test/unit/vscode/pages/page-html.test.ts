import { expect, test } from 'vitest';
import { escapeHtml } from '../../../../extension/common/html';
import { pageHtml } from '../../../../extension/vscode/pages/page-html';
import { markupCorpus } from '../../../e2e/fixtures/markup-corpus.mjs';

const parts = {
  title: 'lake',
  cspSource: 'https://csp.test',
  script: 'https://csp.test/a.js',
  folder: '/w/.ragen/runs/lake',
};

test('the script has the nonce that the policy names, a new one each time', () => {
  const [first, second] = [pageHtml(parts), pageHtml(parts)];
  const nonce = /script-src &#39;nonce-([^&]+)&#39;/.exec(first)![1];
  expect(first).toContain(`<script nonce="${nonce}" src="https://csp.test/a.js"></script>`);
  expect(first).toContain('default-src &#39;none&#39;');
  expect(second).not.toContain(nonce);
});

test('the policy allows the page’s own files only, and no outgoing requests', () => {
  const policy = /http-equiv="Content-Security-Policy" content="([^"]+)"/.exec(pageHtml(parts))![1];
  const directives = policy.replaceAll('&#39;', "'").split('; ');
  expect(directives.map(directive => directive.replace(/nonce-[^']+/, 'nonce'))).toEqual([
    "default-src 'none'",
    "script-src 'nonce'",
    "style-src https://csp.test 'unsafe-inline'",
    'img-src https://csp.test data:',
    'font-src https://csp.test',
    "base-uri 'none'",
    "form-action 'none'",
  ]);
});

test('a style sheet is linked if there is one', () => {
  expect(pageHtml(parts)).not.toContain('<link');
  expect(pageHtml({ ...parts, style: 'https://csp.test/a.css' })).toContain(
    '<link rel="stylesheet" href="https://csp.test/a.css">',
  );
});

test('a run’s name and folder cannot inject markup', () => {
  const html = pageHtml({ ...parts, title: '</title><script>x</script>', folder: `/a"b'><img>` });
  expect(html).toContain('<title>&lt;/title&gt;&lt;script&gt;x&lt;/script&gt;</title>');
  expect(html).toContain('<body data-run="/a&quot;b&#39;&gt;&lt;img&gt;">');
  expect(html.match(/<script/g)).toHaveLength(1);
  expect(escapeHtml(`a&<>"'b`)).toBe('a&amp;&lt;&gt;&quot;&#39;b');
});

test.each(markupCorpus)('%j as a name and a folder does not change the document’s structure', text => {
  const formOf = (html: string) => html.match(/<\/?[a-z]+|[a-z-]+="/gi);
  const html = pageHtml({ ...parts, title: text, folder: text, script: `https://csp.test/${text}` });
  expect(formOf(html)).toEqual(formOf(pageHtml(parts)));
});
