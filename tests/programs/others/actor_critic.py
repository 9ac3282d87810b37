"""An actor and a critic that balance poles: rollouts in tensors made before, advantages backwards in time, PPO."""

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.distributions.categorical import Categorical

from tests.support.numbers import filled, normal, uniform

num_steps, num_envs, gamma, gae_lambda, clip_coef = 8, 3, 0.99, 0.95, 0.2


class CartPoles:
    """Barto, Sutton and Anderson's poles, several at once."""

    def __init__(self):
        self.start = 0.05 * normal(num_envs, 4)

    def reset(self):
        self.state = self.start.copy()
        return self.state

    def step(self, action):
        x, x_dot, theta, theta_dot = self.state.T
        force = np.where(action == 1, 10.0, -10.0)
        sin, cos = np.sin(theta), np.cos(theta)
        temp = (force + 0.05 * theta_dot**2 * sin) / 1.1
        thetaacc = (9.8 * sin - cos * temp) / (0.5 * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
        xacc = temp - 0.05 * thetaacc * cos / 1.1
        tau = 0.06
        self.state = np.stack(
            [x + tau * x_dot, x_dot + tau * xacc, theta + tau * theta_dot, theta_dot + tau * thetaacc], 1
        ).astype("float32")
        done = np.abs(self.state[:, 2]) > 0.2
        self.state[done] = self.start[done]
        return self.state, np.where(done, -1.0, 1.0), done


def layer_init(layer, std=np.sqrt(2), bias_const=0.0):
    torch.nn.init.orthogonal_(layer.weight, std)
    torch.nn.init.constant_(layer.bias, bias_const)
    return layer


class Agent(nn.Module):
    """Two networks."""

    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(layer_init(nn.Linear(4, 8)), nn.Tanh(), layer_init(nn.Linear(8, 1), std=1.0))
        self.actor = nn.Sequential(layer_init(nn.Linear(4, 8)), nn.Tanh(), layer_init(nn.Linear(8, 2), std=0.01))

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action):
        logits = self.actor(x)
        probs = Categorical(logits=logits)
        if action.is_floating_point():  # numbers from 0 to 1, to draw by
            action = (probs.probs.cumsum(-1) < action.unsqueeze(-1)).sum(-1)
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


def main(compiled):
    agent = filled(Agent())
    optimizer = optim.Adam(agent.parameters(), lr=2.5e-2, eps=1e-5)
    envs = CartPoles()
    draws = torch.from_numpy(uniform(3, num_steps, num_envs))
    obs = torch.zeros((num_steps, num_envs, 4))
    actions = torch.zeros((num_steps, num_envs), dtype=torch.long)
    logprobs = torch.zeros((num_steps, num_envs))
    rewards = torch.zeros((num_steps, num_envs))
    dones = torch.zeros((num_steps, num_envs))
    values = torch.zeros((num_steps, num_envs))
    global_step = torch.zeros((), dtype=torch.long)

    @compiled
    def act(next_obs, draw):
        with torch.no_grad():
            action, logprob, _, value = agent.get_action_and_value(next_obs, draw)
        global_step.add_(num_envs)
        return action, logprob, value.flatten()

    @compiled
    def advantages_of(next_obs, next_done):
        with torch.no_grad():
            next_value = agent.get_value(next_obs).reshape(1, -1)
            advantages = torch.zeros_like(rewards)
            lastgaelam = 0
            for t in reversed(range(num_steps)):
                nextnonterminal = 1.0 - (next_done if t == num_steps - 1 else dones[t + 1])
                nextvalues = next_value if t == num_steps - 1 else values[t + 1]
                delta = rewards[t] + gamma * nextvalues * nextnonterminal - values[t]
                advantages[t] = lastgaelam = delta + gamma * gae_lambda * nextnonterminal * lastgaelam
            return advantages, advantages + values

    @compiled
    def update(mb_obs, mb_actions, mb_logprobs, mb_advantages, mb_returns, mb_values):
        _, newlogprob, entropy, newvalue = agent.get_action_and_value(mb_obs, mb_actions)
        logratio = newlogprob - mb_logprobs
        ratio = logratio.exp()
        with torch.no_grad():
            approx_kl = ((ratio - 1) - logratio).mean()
            clipfrac = ((ratio - 1.0).abs() > clip_coef).float().mean()
        mb_advantages = (mb_advantages - mb_advantages.mean()) / (mb_advantages.std() + 1e-8)
        pg_loss1 = -mb_advantages * ratio
        pg_loss2 = -mb_advantages * torch.clamp(ratio, 1 - clip_coef, 1 + clip_coef)
        pg_loss = torch.max(pg_loss1, pg_loss2).mean()
        newvalue = newvalue.view(-1)
        v_clipped = mb_values + torch.clamp(newvalue - mb_values, -clip_coef, clip_coef)
        v_loss = 0.5 * torch.max((newvalue - mb_returns) ** 2, (v_clipped - mb_returns) ** 2).mean()
        loss = pg_loss - 0.01 * entropy.mean() + v_loss * 0.5
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
        optimizer.step()
        return loss, approx_kl, clipfrac

    losses = []
    next_obs, next_done = torch.Tensor(envs.reset()), torch.zeros(num_envs)
    for iteration in range(3):
        optimizer.param_groups[0]["lr"] = (1.0 - iteration / 3) * 2.5e-2
        for step in range(num_steps):
            obs[step], dones[step] = next_obs, next_done
            action, logprob, value = act(next_obs, draws[iteration, step])
            actions[step], logprobs[step], values[step] = action, logprob, value
            state, reward, done = envs.step(action.cpu().numpy())
            rewards[step] = torch.tensor(reward).view(-1)
            next_obs, next_done = torch.Tensor(state), torch.Tensor(done.astype("float32"))
        advantages, returns = advantages_of(next_obs, next_done)
        b_inds = np.arange(num_steps * num_envs)
        for epoch in range(2):
            for start in range(0, len(b_inds), 12):
                mb_inds = np.roll(b_inds, 5 * epoch)[start : start + 12]
                flat = [
                    each.reshape((-1, *each.shape[2:]))
                    for each in (obs, actions, logprobs, advantages, returns, values)
                ]
                losses += [each.item() for each in update(*(each[mb_inds] for each in flat))]
    return losses, {"agent": agent, "optimizer": optimizer, "steps": global_step, "actions": actions}
