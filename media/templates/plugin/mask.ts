// A credit mask: the tokens of thoughts count half as much as those of answers. Name this file in the configuration,
// workbench.credit_mask: plugins/my_plugin.ts. A saved change applies from the next step on.
import { defineMask } from 'ragen-workbench/api/plugins/mask';

export default defineMask({
  name: 'my_plugin',

  // Returns, for each turn of each sample, one weight per token.
  weigh: samples =>
    samples.map(({ turns }) =>
      turns.map(({ texts }) => {
        let text = '';
        return texts.map(token => {
          text += token;
          return text.includes('</think>') ? 1 : 0.5;
        });
      }),
    ),
});
